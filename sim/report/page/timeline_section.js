// The timeline with its buttons, its legend and the list of faults.

function timeline_bar(timeline) {
  const button = (text, label, action) => {
    const node = element('button', {type: 'button', 'aria-label': label, title: label}, text);
    node.addEventListener('click', action);
    return node;
  };
  const fold = button('Fold all', 'Fold or unfold all hosts', () => {
    const any_open = timeline.groups.some(group => group.open);
    timeline.open_groups(!any_open);
    fold.textContent = any_open ? 'Unfold all' : 'Fold all';
  });
  return element('div', {className: 'bar'},
                 button('+', 'Zoom in', () => timeline.zoom(0.5)), button('\u2212', 'Zoom out', () => timeline.zoom(2)),
                 button('\u2190', 'Earlier', () => timeline.pan(-(timeline.width - timeline.left) / 3)),
                 button('\u2192', 'Later', () => timeline.pan((timeline.width - timeline.left) / 3)),
                 button('Whole run', 'Show the whole run', () => timeline.show_all()), fold,
                 element('span', {className: 'space'}), timeline.range);
}

function timeline_legend(timeline) {
  const legend = element('div', {className: 'legend', role: 'group', 'aria-label': 'Shown kinds'});
  const keys = [...timeline.colour_names].sort(([a], [b]) => a.startsWith('state ') - b.startsWith('state '));
  for (const [key, name] of keys.slice(0, 40)) {
    const swatch = element('i', {});
    swatch.style.background = `var(--${name})`;
    const button = element('button', {type: 'button', 'aria-pressed': 'true'}, swatch, key.replace(/^state /, '') || 'other');
    button.addEventListener('click', () => {
      const hide = !timeline.hidden.delete(key);
      if (hide) timeline.hidden.add(key);
      button.setAttribute('aria-pressed', String(!hide));
      timeline.draw_soon();
    });
    legend.append(button);
  }
  return legend;
}

function time_button(timeline, ns) {
  const button = element('button', {type: 'button', className: 'link', title: 'Show in the timeline'}, point_text(ns, 1));
  button.addEventListener('click', () => timeline.show_time(ns));
  return button;
}

const FAULT_ROWS_MAX = 200;

function fault_list(timeline) {
  const faults = timeline.faults.slice(0, FAULT_ROWS_MAX);
  if (faults.length === 0) return null;
  const rows = table([
    {name: 'Time', short: true, cell: event => time_button(timeline, event.begin)},
    {name: 'Event', cell: event => event.name},
    {name: 'Where', cell: event => timeline.tracks[event.track].join(' \u203a ')},
    {name: 'More', cell: event => event.args.map(([name, value]) => `${name} ${value}`).join(', ')},
  ], faults, false);
  const count = timeline.faults.length > faults.length ? `first ${faults.length} of ${count_text(timeline.faults.length)}` : faults.length;
  return element('details', {}, element('summary', {}, `Faults and checks (${count})`), rows);
}

function show_timeline(data, timeline) {
  const body = body_of('timeline');
  if (data.events.length === 0) {
    body.append(note('The run has no events.'));
    return;
  }
  body.append(timeline_bar(timeline), timeline.box, timeline_legend(timeline),
              note('Drag or Shift + wheel moves, Ctrl + wheel or a pinch zooms; a host name folds its rows.'));
  if (data.event_count > data.events.length)
    body.append(note(`${count_text(data.events.length)} of ${count_text(data.event_count)} events are shown; ` +
        `${count_text(data.event_count - data.events.length)} were left out. ` +
        'Faults, checks and states come first, then the longest operations.'));
  const list = fault_list(timeline);
  if (list) body.append(list);
}
