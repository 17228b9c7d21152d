// Who sent how much to whom: a matrix, and the pairs with the most bytes as a table.

class TrafficPicture {
  constructor(traffic) {
    this.traffic = traffic;
    this.cells = new Map(traffic.cells.map(cell => [cell[0] + ' ' + cell[1], cell]));
    this.most = Math.max(...traffic.pairs.map(pair => Math.max(pair[2], pair[3])));  // "all others" may be more
    this.canvas = element('canvas', {role: 'img', 'aria-label':
        `Bytes from ${traffic.senders.length} senders to ${traffic.receivers.length} receivers`});
    this.box = element('div', {className: 'scroll', tabIndex: 0}, this.canvas);
    new ResizeObserver(() => this.draw()).observe(this.box);
    this.canvas.addEventListener('pointermove', event => this.hover(event));
    this.canvas.addEventListener('click', event => this.hover(event));
    this.canvas.addEventListener('pointerleave', () => tip.hide());
  }

  draw() {
    const {senders, receivers} = this.traffic;
    const available = this.box.clientWidth;
    const measure = this.canvas.getContext('2d');
    measure.font = '12px ' + FONT;
    const longest = names => Math.max(...names.map(name => text_width(measure, name)));
    this.left = Math.min(longest(senders) + 10, available < 480 ? 96 : 150);
    this.top = Math.min(longest(receivers) + 12, 120);
    this.side = Math.max(12, Math.min(54, Math.floor((available - this.left - 1) / receivers.length)));
    const width = this.left + this.side * receivers.length + 1;
    this.row_side = Math.min(this.side, 32);
    const context = sharp_context(this.canvas, width, this.top + this.row_side * senders.length + 1);
    context.font = (this.side < 15 ? '10px ' : '12px ') + FONT;
    context.fillStyle = colours.text;
    senders.forEach((name, i) => {
      const text = fitted(context, name, this.left - 8);
      context.fillText(text, this.left - 6 - text_width(context, text), this.top + (i + 0.5) * this.row_side);
    });
    receivers.forEach((name, i) => {
      context.save();
      context.translate(this.left + (i + 0.5) * this.side, this.top - 6);
      context.rotate(-Math.PI / 2);
      context.fillText(fitted(context, name, this.top - 8), 0, 0);
      context.restore();
    });
    context.fillStyle = colours['heat-0'];
    context.fillRect(this.left, this.top, this.side * receivers.length, this.row_side * senders.length);
    for (const cell of this.traffic.cells) this.draw_cell(context, cell);
    context.fillStyle = colours.card;
    const [all_width, all_height] = [this.side * receivers.length, this.row_side * senders.length];
    for (let i = 0; i <= receivers.length; ++i) context.fillRect(this.left + i * this.side - 0.5, this.top, 1, all_height);
    for (let i = 0; i <= senders.length; ++i) context.fillRect(this.left, this.top + i * this.row_side - 0.5, all_width, 1);
  }

  draw_cell(context, [row, column, planned, landed]) {
    const x = this.left + column * this.side;
    const y = this.top + row * this.row_side;
    const colour = landed > 0 ? heat(0.12 + 0.8 * Math.sqrt(landed / this.most)) : colours['heat-0'];
    context.fillStyle = colour;
    context.fillRect(x, y, this.side, this.row_side);
    if (landed < planned) {
      const corner = Math.min(10, this.row_side * 0.6);
      context.fillStyle = colours.fault;
      context.beginPath();
      context.moveTo(x + this.side, y);
      context.lineTo(x + this.side, y + corner);
      context.lineTo(x + this.side - corner, y);
      context.fill();
    }
    if (this.side < 40) return;
    context.font = '10px ' + FONT;
    context.fillStyle = readable_on(colour);
    const text = short_bytes_text(landed);
    if (text_width(context, text) <= this.side - 4)
      context.fillText(text, x + (this.side - text_width(context, text)) / 2, y + this.row_side / 2 + 1);
  }

  hover(event) {
    const {senders, receivers} = this.traffic;
    const column = Math.floor((event.offsetX - this.left) / this.side);
    const row = Math.floor((event.offsetY - this.top) / this.row_side);
    if (row < 0 || column < 0 || row >= senders.length || column >= receivers.length) {
      tip.hide();
      return;
    }
    const [, , planned, landed] = this.cells.get(row + ' ' + column) ?? [row, column, 0, 0];
    tip.show(event.clientX, event.clientY, `${senders[row]} \u2192 ${receivers[column]}`,
             [['planned', bytes_text(planned)], ['landed', bytes_text(landed)]]);
  }
}

function pair_table(traffic) {
  return table([
    {name: 'From', cell: pair => pair[0]}, {name: 'To', cell: pair => pair[1]},
    {name: 'Planned', number: true, cell: pair => bytes_text(pair[2])},
    {name: 'Landed', number: true, cell: pair =>
        element('span', {className: pair[3] < pair[2] ? 'bad' : ''}, bytes_text(pair[3]))},
  ], traffic.pairs, false);
}

function show_traffic(data) {
  const {traffic} = data;
  const body = body_of('traffic');
  if (traffic.cells.length === 0) {
    body.append(note('Nothing was planned or moved between participants.'));
    return null;
  }
  const picture = new TrafficPicture(traffic);
  const legend = element('p', {className: 'note'},
                         'Rows send, columns receive. A red corner: less landed than was planned.');
  const scale = element('div', {className: 'scale'}, '0', element('span', {className: 'ramp'}), bytes_text(picture.most) + ' landed');
  const together = (count, what) => (count > 0 ? ` "all others" stands for ${count_text(count)} ${what}.` : '');
  legend.append(together(traffic.senders_together, 'senders'), together(traffic.receivers_together, 'receivers'));
  const pairs = element('div', {}, pair_table(traffic));
  if (traffic.pair_count > traffic.pairs.length)
    pairs.append(note(`The ${traffic.pairs.length} largest of ${count_text(traffic.pair_count)} pairs.`));
  body.append(element('div', {className: 'columns'}, element('div', {}, picture.box, scale, legend), pairs));
  return picture;
}
