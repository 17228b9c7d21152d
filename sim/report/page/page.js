// Puts the page together.

const GOOD_VERDICTS = ['activated', 'committed', 'restored', 'released', 'complete', 'completed', 'done', 'ok'];
const BAD_VERDICTS = ['aborted', 'failed', 'lost', 'stuck', 'violated'];

function verdict_node(verdict) {
  const word = verdict.toLowerCase();
  const kind = GOOD_VERDICTS.includes(word) ? 'good' : BAD_VERDICTS.includes(word) ? 'bad' : '';
  return element('span', {className: kind}, verdict);
}

function show_head(data) {
  document.title = data.scenario ? data.scenario + ' \u2013 Crossdock run report' : 'Crossdock run report';
  by_id('scenario').textContent = data.scenario || 'Run without a name';
  by_id('shows').textContent = data.shows;
  const badge = by_id('verdict');
  const stated = data.expected !== '';
  badge.classList.add(!data.as_expected ? 'bad' : stated ? 'good' : 'plain');
  badge.append(!data.as_expected ? 'Not as expected' : stated ? 'As expected' : 'Verdict');
  const detail = !stated ? data.actual : data.expected === data.actual ? data.actual
      : `expected ${data.expected}, was ${data.actual}`;
  badge.append(element('span', {}, ': ' + (detail || 'none')));
  const sum = (list, field) => list.reduce((total, item) => total + item[field], 0);
  const violated = Math.max(data.violation_count, sum(data.invariants, 'violation_count'));
  const figures = [
    ['Duration', time_text(data.duration)], ['Works', count_text(data.work_count)], ['Moved', bytes_text(sum(data.works, 'bytes'))],
    ['Events', count_text(data.event_count)], ['Checks', count_text(sum(data.invariants, 'check_count'))],
    ['Violations', element('span', {className: violated > 0 ? 'bad' : 'good'}, count_text(violated))],
  ];
  by_id('figures').append(...figures.map(([name, value]) => element('div', {}, element('dt', {}, name), element('dd', {}, value))));
}

function show_works(data) {
  const body = body_of('works');
  if (data.works.length === 0) {
    body.append(note('The run had no work.'));
    return;
  }
  body.append(table([
    {name: 'Work', cell: work => work.name}, {name: 'Kind', cell: work => work.kind},
    {name: 'Verdict', short: true, cell: work => verdict_node(work.verdict)}, {name: 'Cause', wide: true, cell: work => work.cause},
    {name: 'Began', number: true, cell: work => time_text(work.begin)},
    {name: 'Took', number: true, cell: work => (work.begin === null || work.end === null ? 'not ended' : time_text(work.done - work.begin))},
    {name: 'Moved', number: true, cell: work => bytes_text(work.bytes)},
  ], data.works, true));
  if (data.work_count > data.works.length)
    body.append(note(`The first ${count_text(data.works.length)} of ${count_text(data.work_count)} works.`));
}

function show_invariants(data) {
  const body = body_of('invariants');
  if (data.invariants.length === 0) {
    body.append(note('No invariant was checked.'));
    return;
  }
  body.append(table([
    {name: 'Name', short: true, cell: item => item.invariant}, {name: 'Rule', wide: true, cell: item => item.rule},
    {name: 'Checks', number: true, cell: item => count_text(item.check_count)},
    {name: 'Violations', number: true, cell: item =>
        element('span', {className: item.violation_count > 0 ? 'bad' : ''}, count_text(item.violation_count))},
  ], data.invariants, true));
}

function show_violations(data, timeline) {
  const body = body_of('violations');
  if (data.violations.length === 0) {
    body.append(element('p', {className: 'good'}, 'None.'));
  } else {
    body.append(table([
      {name: 'Time', short: true, cell: item => (item.time === null ? 'never' : time_button(timeline, item.time))},
      {name: 'Invariant', short: true, cell: item => item.invariant}, {name: 'What', wide: true, cell: item => item.what},
      {name: 'Event', number: true, cell: item => count_text(item.event)},
    ], data.violations, true));
    if (data.violation_count > data.violations.length)
      body.append(note(`The first ${count_text(data.violations.length)} of ${count_text(data.violation_count)} violations.`));
  }
  if (data.replay) body.append(note('This run again:'), copy_line(data.replay));
}

function show_details(data) {
  const facts = [['Seed', data.seed], ['Digest', data.digest], ['Cluster', data.cluster],
                 ['Duration', `${time_text(data.duration)} (${count_text(data.duration)} ns)`],
                 ['Expected', data.expected || 'nothing stated'], ['Actual', data.actual]];
  body_of('details').append(element('dl', {className: 'facts'}, ...facts.filter(([, value]) => value).flatMap(
      ([name, value]) => [element('dt', {}, name), element('dd', {className: name === 'Digest' ? 'mono' : ''}, value)])));
}

function show_page() {
  const data = JSON.parse(by_id('data').textContent);
  read_colours();
  const timeline = new Timeline(data);
  show_head(data);
  show_works(data);
  show_invariants(data);
  show_violations(data, timeline);
  show_timeline(data, timeline);
  const links = show_links(data);
  const traffic = show_traffic(data);
  show_details(data);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
    read_colours();
    timeline.layout();
    links?.draw();
    traffic?.draw();
  });
  document.addEventListener('pointerdown', event => { if (event.target.tagName !== 'CANVAS') tip.hide(); });
  document.addEventListener('scroll', () => tip.hide(), true);
  return {data, timeline, links, traffic};
}

const page = show_page();
