// How busy the busiest links were: a row for each, a column for each part of the run.

const LINKS_AT_FIRST = 16;
const FULL_SHARE = 980;  // thousandths from which a link counts as full

class LinkPicture {
  constructor(data) {
    this.data = data;
    this.count = Math.min(LINKS_AT_FIRST, data.links.length);
    this.canvas = element('canvas', {role: 'img', 'aria-label': 'Share of the capacity of each link over time'});
    this.box = element('div', {className: 'heat'}, this.canvas);
    new ResizeObserver(() => this.draw()).observe(this.box);
    this.canvas.addEventListener('pointermove', event => this.hover(event));
    this.canvas.addEventListener('click', event => this.hover(event));
    this.canvas.addEventListener('pointerleave', () => tip.hide());
  }

  draw() {
    const width = this.box.clientWidth;
    this.narrow = width < 640;
    this.left = this.narrow ? 0 : 190;
    this.right = this.narrow ? 0 : 110;
    this.row_height = this.narrow ? 34 : 20;
    const height = AXIS_HEIGHT + this.count * this.row_height + 2;
    const context = sharp_context(this.canvas, width, height);
    this.plot_width = width - this.left - this.right;
    draw_time_axis(context, {begin: 0, end: Math.max(this.data.end, 1)}, this.left, this.plot_width, AXIS_HEIGHT);
    if (!this.narrow) {
      context.fillStyle = colours.muted;
      context.fillText('mean', width - 100, 11);
      context.fillText('peak', width - 46, 11);
    }
    this.data.links.slice(0, this.count).forEach((link, i) => this.draw_row(context, link, AXIS_HEIGHT + i * this.row_height, width));
  }

  draw_row(context, link, y, width) {
    const label_height = this.narrow ? 16 : 0;
    const height = this.row_height - label_height - 2;
    const part_width = this.plot_width / link.shares.length;
    const mean = percent_text(link.shares.reduce((sum, share) => sum + share, 0) / link.shares.length);
    context.fillStyle = colours['heat-0'];
    context.fillRect(this.left, y + label_height, this.plot_width, height);
    link.shares.forEach((share, i) => {
      if (share === 0) return;
      context.fillStyle = share >= FULL_SHARE ? colours.full : heat(0.08 + 0.92 * share / 1000);
      const begin = Math.floor(this.left + i * part_width);
      context.fillRect(begin, y + label_height, Math.ceil(this.left + (i + 1) * part_width) - begin, height);
    });
    context.font = '12px ' + FONT;
    context.fillStyle = colours.text;
    if (this.narrow) {
      const right = `mean ${mean}, peak ${percent_text(link.peak)}`;
      const right_width = text_width(context, right);
      context.fillText(fitted(context, link.name, width - right_width - 12), 0, y + 8);
      context.fillStyle = colours.muted;
      context.fillText(right, width - right_width, y + 8);
    } else {
      context.fillText(fitted(context, link.name, this.left - 12), 0, y + height / 2 + 1);
      context.fillStyle = colours.muted;
      context.fillText(mean, width - 100, y + height / 2 + 1);
      context.fillText(percent_text(link.peak), width - 46, y + height / 2 + 1);
    }
  }

  hover(event) {
    const link = this.data.links[Math.floor((event.offsetY - AXIS_HEIGHT) / this.row_height)];
    const at = Math.floor((event.offsetX - this.left) / this.plot_width * (link?.shares.length ?? 0));
    if (event.offsetY < AXIS_HEIGHT || !link || event.offsetX < this.left || at >= link.shares.length) {
      tip.hide();
      return;
    }
    const part = this.data.end / link.shares.length;
    tip.show(event.clientX, event.clientY, link.name, [
      ['time', `${point_text(at * part, part)} to ${point_text((at + 1) * part, part)}`],
      ['used', `${percent_text(link.shares[at])}, ${rate_text(link.shares[at] / 1000 * link.capacity)}`],
      ['capacity', link.capacity > 0 ? rate_text(link.capacity) : 'not stated'], ['carried', bytes_text(link.bytes)],
    ]);
  }
}

function show_links(data) {
  const body = body_of('links');
  if (data.links.length === 0) {
    body.append(note(data.link_count > 0 ? 'No link carried anything.' : 'The run has no record of its links.'));
    return null;
  }
  const picture = new LinkPicture(data);
  const scale = element('div', {className: 'scale'}, '0 %', element('span', {className: 'ramp'}), '98 % of the capacity',
                        element('span', {className: 'full'}, element('span', {className: 'box'}), 'full'));
  body.append(picture.box, scale);
  const text = element('p', {className: 'note'});
  const tell = () => {
    text.textContent = `The ${picture.count} busiest of ${count_text(data.link_count)} links, by mean share of their capacity. `;
  };
  tell();
  body.append(text);
  if (data.links.length > picture.count) {
    const more = element('button', {type: 'button'}, `Show ${data.links.length}`);
    more.addEventListener('click', () => {
      picture.count = data.links.length;
      more.remove();
      tell();
      picture.draw();
    });
    body.append(more);
  }
  return picture;
}
