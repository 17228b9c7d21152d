// Draws the part of the timeline that is in sight. Slices thinner than a pixel share one.

const AXIS_HEIGHT = 22;

function draw_timeline(timeline) {
  const {canvas, box, view, rows, width, height, left} = timeline;
  const context = sharp_context(canvas, width, height);
  const plot_width = width - left;
  const x_of = ns => left + (ns - view.begin) / (view.end - view.begin) * plot_width;
  const scroll = box.scrollTop;
  draw_time_axis(context, view, left, plot_width, height);

  context.save();
  context.beginPath();
  context.rect(0, AXIS_HEIGHT, width, height - AXIS_HEIGHT);
  context.clip();
  context.translate(0, AXIS_HEIGHT - scroll);
  for (const row of rows) {
    if (row.y + row.height < scroll || row.y > scroll + height) continue;
    if (row.group) draw_group(context, timeline, row, x_of);
    else draw_track(context, timeline, row, x_of);
  }
  context.restore();
  draw_marks(context, timeline, x_of);
  draw_window(context, timeline);
}

function draw_group(context, timeline, row, x_of) {
  const {group, y, height} = row;
  context.fillStyle = colours.inset;
  context.fillRect(0, y, timeline.width, height);
  context.fillStyle = colours.line;
  context.fillRect(0, y, timeline.width, 1);
  context.fillStyle = colours.text;
  context.font = '600 12px ' + FONT;
  const arrow = group.open ? '\u25be' : '\u25b8';
  const room = timeline.left > 0 && !group.open ? timeline.left - 26 : timeline.width - 40;
  context.fillText(arrow, 7, y + height / 2 + 1);
  context.fillText(fitted(context, group.name, room), 21, y + height / 2 + 1);
  if (group.open || timeline.left === 0) return;
  draw_slices(context, timeline, group.events.filter(event => event.is_slice), y + 7, 11, x_of, false);
}

function draw_track(context, timeline, row, x_of) {
  const {track, y, height, lane_height, label_height} = row;
  context.fillStyle = colours.grid;
  context.fillRect(0, y, timeline.width, 1);
  const top = y + 3 + label_height;
  track.lanes.forEach((lane, i) => draw_slices(context, timeline, lane, top + i * (lane_height + 1), lane_height, x_of, true));
  for (const event of track.instants) {
    const x = x_of(event.begin);
    if (timeline.hidden.has(key_of(event)) || x < timeline.left - 5 || x > timeline.width + 5) continue;
    // Small ones sit on the lower edge, where they hide no name.
    if (is_fault(event)) draw_diamond(context, x, top + lane_height / 2, 5.5, timeline.colour_of(event));
    else draw_diamond(context, x, top + lane_height - 1, 3.5, timeline.colour_of(event));
  }
  context.font = '11px ' + FONT;
  if (timeline.left > 0) {
    context.fillStyle = colours.card;
    context.fillRect(0, y + 1, timeline.left, height - 1);
    context.fillStyle = colours.grid;
    context.fillRect(timeline.left - 1, y, 1, height);
  }
  context.fillStyle = colours.muted;
  const room = timeline.left > 0 ? timeline.left - 30 : timeline.width - 16;
  const middle = timeline.left > 0 ? y + 3 + lane_height / 2 : y + 9;
  context.fillText(fitted(context, track.name, room), timeline.left > 0 ? 21 : 8, middle + 0.5);
}

function draw_slices(context, timeline, slices, y, height, x_of, with_text) {
  const {left, width, view, hidden} = timeline;
  context.font = '11px ' + FONT;
  let drawn_to = -1;  // pixel columns up to here have their thin slice
  for (const slice of slices) {
    if (slice.begin > view.end) break;
    if (slice.end < view.begin || hidden.has(key_of(slice))) continue;
    const begin = Math.max(x_of(slice.begin), left);
    const end = Math.min(x_of(slice.end), width);
    if (end - begin < 1) {
      if (Math.floor(begin) <= drawn_to) continue;
      drawn_to = Math.floor(begin);
    }
    const colour = timeline.colour_of(slice);
    const gap = end - begin > 4 ? 1 : 0;
    context.fillStyle = colour;
    context.fillRect(begin, y, Math.max(end - begin - gap, 1), height);
    if (!slice.ended) draw_open_end(context, end, y, height);
    if (!with_text || end - begin < 30 || height < 11) continue;
    const label = fitted(context, slice.name, end - begin - 9);
    context.fillStyle = readable_on(colour);
    if (label) context.fillText(label, begin + 4, y + height / 2 + 0.5);
  }
}

// A jagged edge: this had not ended when the run did.
function draw_open_end(context, x, y, height) {
  context.fillStyle = colours.card;
  context.beginPath();
  for (let at = 0; at < height; at += 4) {
    context.moveTo(x, y + at);
    context.lineTo(x - 4, y + at + 2);
    context.lineTo(x, y + at + 4);
  }
  context.fill();
}

function draw_diamond(context, x, y, reach, colour) {
  context.fillStyle = colour;
  context.strokeStyle = colours.card;
  context.beginPath();
  context.moveTo(x, y - reach);
  context.lineTo(x + reach, y);
  context.lineTo(x, y + reach);
  context.lineTo(x - reach, y);
  context.closePath();
  context.fill();
  context.stroke();
}

// Faults, checks and violations cross all rows.
function draw_marks(context, timeline, x_of) {
  context.save();
  context.globalAlpha = 0.55;
  context.setLineDash([4, 3]);
  const drawn = new Set();
  const draw = (ns, colour) => {
    const x = Math.round(x_of(ns)) + 0.5;
    if (drawn.has(x) || x < timeline.left || x > timeline.width) return;
    drawn.add(x);
    context.strokeStyle = colour;
    context.beginPath();
    context.moveTo(x, AXIS_HEIGHT);
    context.lineTo(x, timeline.height);
    context.stroke();
  };
  for (const ns of timeline.violation_times) draw(ns, colours.check);
  for (const event of timeline.faults) if (!timeline.hidden.has(key_of(event))) draw(event.begin, timeline.colour_of(event));
  context.restore();
}

// Under the axis: which part of the run is in sight.
function draw_window(context, timeline) {
  const {view, full, left, width} = timeline;
  const x_of = ns => left + (ns - full.begin) / (full.end - full.begin) * (width - left);
  context.fillStyle = colours.line;
  context.fillRect(0, AXIS_HEIGHT - 2, width, 2);
  if (view.begin <= full.begin && view.end >= full.end) return;
  context.fillStyle = colours.accent;
  context.fillRect(x_of(view.begin), AXIS_HEIGHT - 3, Math.max(x_of(view.end) - x_of(view.begin), 3), 3);
}
