// The timeline: what is in sight, and how wheel, drag, pinch, keys and buttons move it.

const SHORTEST_VIEW_NS = 20;

class Timeline {
  constructor(data) {
    this.full = {begin: 0, end: Math.max(data.end, 1)};
    const events = read_events(data);
    for (const event of events) this.full.begin = Math.min(this.full.begin, event.begin);
    this.view = {...this.full};
    this.groups = read_groups(data, events);
    this.tracks = data.tracks;
    this.faults = events.filter(event => is_fault(event) && !event.is_slice).sort((a, b) => a.begin - b.begin);
    this.violation_times = data.violations.map(violation => violation.time).filter(time => time !== null);
    this.colour_names = colour_names(events);
    this.hidden = new Set();
    this.pointers = new Map();
    this.canvas = element('canvas', {tabIndex: 0, role: 'img', 'aria-label':
        `Timeline of ${events.length} events on ${data.tracks.length} tracks; arrow keys move, + and - zoom, 0 shows all`});
    this.spacer = element('div', {}, this.canvas);
    this.box = element('div', {className: 'picture rows'}, this.spacer);
    this.range = element('span', {className: 'range'});
    this.listen();
  }

  colour_of(event) { return colours[this.colour_names.get(key_of(event))]; }

  layout() {
    this.width = this.box.clientWidth;
    this.left = this.width < 640 ? 0 : 190;
    const [rows, rows_height] = place_rows(this.groups, this.left === 0);
    this.rows = rows;
    this.spacer.style.height = AXIS_HEIGHT + rows_height + 'px';
    this.height = this.box.clientHeight;
    if (this.box.clientWidth !== this.width) {  // a scroll bar came or went
      this.width = this.box.clientWidth;
      this.height = this.box.clientHeight;
    }
    this.draw_soon();
  }

  draw_soon() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.range.textContent = `${point_text(this.view.begin, this.precision())} to ${point_text(this.view.end, this.precision())}`;
      draw_timeline(this);
    });
  }

  precision() { return Math.max((this.view.end - this.view.begin) / 1000, 1); }

  // Keeps the length and stays within the run.
  set_view(begin, length) {
    const whole = this.full.end - this.full.begin;
    length = Math.min(Math.max(length, Math.min(SHORTEST_VIEW_NS, whole)), whole);
    begin = Math.min(Math.max(begin, this.full.begin), this.full.end - length);
    this.view = {begin, end: begin + length};
    this.draw_soon();
  }

  time_at(x) {
    return this.view.begin + (x - this.left) / (this.width - this.left) * (this.view.end - this.view.begin);
  }

  zoom(factor, x = (this.left + this.width) / 2) {
    const anchor = this.time_at(Math.max(x, this.left));
    const length = this.view.end - this.view.begin;
    const next = Math.min(Math.max(length * factor, SHORTEST_VIEW_NS), this.full.end - this.full.begin);
    this.set_view(anchor - (anchor - this.view.begin) * next / length, next);
  }

  pan(pixels) {
    const length = this.view.end - this.view.begin;
    this.set_view(this.view.begin + pixels * length / (this.width - this.left), length);
  }

  show_all() { this.set_view(this.full.begin, this.full.end - this.full.begin); }

  // A tenth of the run around a time, or less when it is closer already.
  show_time(ns) {
    const length = Math.min(this.view.end - this.view.begin, (this.full.end - this.full.begin) / 10);
    this.set_view(ns - length / 2, length);
    by_id('timeline').scrollIntoView({block: 'start'});
  }

  open_groups(open) {
    for (const group of this.groups) group.open = open;
    this.layout();
  }

  row_at(y) {
    const at = y - AXIS_HEIGHT + this.box.scrollTop;
    return y < AXIS_HEIGHT ? undefined : this.rows.find(row => at >= row.y && at < row.y + row.height);
  }

  // The event under a point: instants first, then the nearest and shortest slice; `reach` pixels beside it count.
  event_at(x, y, reach) {
    const row = this.row_at(y);
    if (!row || x < this.left) return undefined;
    const time = this.time_at(x);
    const ns_per_pixel = (this.view.end - this.view.begin) / (this.width - this.left);
    const distance = event => Math.max(event.begin - time, time - event.end, 0);
    const nearest = (events, pixels) => events
        .filter(event => distance(event) <= pixels * ns_per_pixel && !this.hidden.has(key_of(event)))
        .sort((a, b) => distance(a) - distance(b) || (a.end - a.begin) - (b.end - b.begin))[0];
    if (row.group) return nearest(this.faults, reach);
    const {track, lane_height, label_height} = row;
    const lane = Math.floor((y - AXIS_HEIGHT + this.box.scrollTop - row.y - 3 - label_height) / (lane_height + 1));
    const slices = track.lanes[Math.min(Math.max(lane, 0), track.lanes.length - 1)] ?? [];
    return nearest(track.instants, reach + 3) ?? nearest(slices, reach) ?? nearest(this.faults, reach);
  }

  show_tip(event, x, y) {
    const [group, track] = this.tracks[event.track];
    const rows = [['where', `${group} \u203a ${track}`], ['kind', event.category]];
    if (event.is_slice) {
      rows.push(['from', point_text(event.begin, 1)]);
      rows.push(event.ended ? ['for', time_text(event.end - event.begin)] : ['end', 'not in this run']);
    } else {
      rows.push(['at', point_text(event.begin, 1)]);
    }
    tip.show(x, y, event.name, rows.concat(event.args));
  }

  listen() {
    const {canvas, box} = this;
    box.addEventListener('scroll', () => this.draw_soon());
    new ResizeObserver(() => this.layout()).observe(box);
    canvas.addEventListener('wheel', event => this.on_wheel(event), {passive: false});
    canvas.addEventListener('keydown', event => this.on_key(event));
    canvas.addEventListener('pointerdown', event => {
      this.pointers.set(event.pointerId, {x: event.offsetX, y: event.offsetY, moved: false});
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener('pointermove', event => this.on_move(event));
    canvas.addEventListener('pointerup', event => {
      const pointer = this.pointers.get(event.pointerId);
      this.pointers.delete(event.pointerId);
      canvas.classList.remove('dragging');
      if (pointer && !pointer.moved && this.pointers.size === 0) this.on_click(event);
    });
    canvas.addEventListener('pointercancel', event => this.pointers.delete(event.pointerId));
    canvas.addEventListener('pointerleave', () => { if (!tip.pinned) tip.hide(); });
  }

  on_wheel(event) {
    const pixels = event.deltaMode === 1 ? 16 : 1;
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      this.zoom(Math.exp(Math.max(-1, Math.min(1, event.deltaY * pixels / 240))), event.offsetX);
    } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      event.preventDefault();
      this.pan((event.deltaX || event.deltaY) * pixels);
    }
  }

  on_key(event) {
    const actions = {'+': () => this.zoom(0.5), '=': () => this.zoom(0.5), '-': () => this.zoom(2), '0': () => this.show_all(),
                     ArrowLeft: () => this.pan(-80), ArrowRight: () => this.pan(80), Escape: () => tip.hide()};
    if (!actions[event.key] || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    actions[event.key]();
  }

  on_move(event) {
    const pointer = this.pointers.get(event.pointerId);
    if (!pointer) {
      if (!tip.pinned) this.hover(event, 3);
      return;
    }
    const before = [...this.pointers.values()].map(p => ({...p}));
    if (Math.hypot(event.offsetX - pointer.x, event.offsetY - pointer.y) < 4 && !pointer.moved) return;
    const last = {...pointer};
    Object.assign(pointer, {x: event.offsetX, y: event.offsetY, moved: true});
    tip.hide();
    if (this.pointers.size === 2) {
      this.pinch(before, [...this.pointers.values()]);
    } else {
      this.canvas.classList.add('dragging');
      this.pan(last.x - pointer.x);
      if (event.pointerType === 'mouse') this.box.scrollTop += last.y - pointer.y;
    }
  }

  pinch(before, now) {
    const spread = points => Math.max(Math.abs(points[0].x - points[1].x), 10);
    const middle = points => (points[0].x + points[1].x) / 2;
    this.pan(middle(before) - middle(now));
    this.zoom(spread(before) / spread(now), middle(now));
  }

  hover(event, reach) {
    const found = this.event_at(event.offsetX, event.offsetY, reach);
    this.canvas.style.cursor = found || this.row_at(event.offsetY)?.group ? 'pointer' : '';
    if (found) this.show_tip(found, event.clientX, event.clientY);
    else tip.hide();
  }

  on_click(event) {
    const row = this.row_at(event.offsetY);
    if (row?.group && (event.offsetX < this.left || this.left === 0)) {
      row.group.open = !row.group.open;
      this.layout();
      return;
    }
    this.hover(event, event.pointerType === 'mouse' ? 3 : 9);
    tip.pinned = !by_id('tip').hidden;
  }
}
