// What the pictures share: colours of the page, a sharp canvas, text that fits, the tooltip.

let colours = {};

function read_colours() {
  const style = getComputedStyle(document.documentElement);
  colours = {};
  for (const name of ['page', 'card', 'inset', 'text', 'muted', 'line', 'grid', 'accent', 'heat-0', 'heat-1', 'heat-2', 'heat-3',
                      'full', 'operation', 'message', 'store', 'fault', 'check', 'other', 'state-0', 'state-1', 'state-2',
                      'state-3', 'state-4', 'state-5', 'state-6', 'state-7'])
    colours[name] = style.getPropertyValue('--' + name).trim();
}

const rgb = hex => [1, 3, 5].map(at => parseInt(hex.slice(at, at + 2), 16));
const mixed = (a, b, share) => {
  const [from, to] = [rgb(a), rgb(b)];
  return '#' + from.map((part, i) => Math.round(part + (to[i] - part) * share).toString(16).padStart(2, '0')).join('');
};

const luminance = hex => {
  const [r, g, b] = rgb(hex).map(part => {
    const c = part / 255;
    return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
// Dark or light, whichever reads better on `back`.
const readable_on = back => (luminance(back) > 0.19 ? '#10151c' : '#ffffff');

// 0: nothing, 1: all.
function heat(share) {
  const steps = ['heat-0', 'heat-1', 'heat-2', 'heat-3'].map(name => colours[name]);
  const at = Math.min(Math.max(share, 0), 1) * 3;
  const low = Math.min(Math.floor(at), 2);
  return mixed(steps[low], steps[low + 1], at - low);
}

// Sets the size in page pixels; returns a context in which one unit is one of them.
function sharp_context(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  const [pixels_x, pixels_y] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== pixels_x || canvas.height !== pixels_y) {
    canvas.width = pixels_x;
    canvas.height = pixels_y;
    canvas.style.width = width + 'px';
    canvas.style.height = height + 'px';
  }
  const context = canvas.getContext('2d');
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.textBaseline = 'middle';
  return context;
}

const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, Arial, sans-serif';
const widths = new Map();

function text_width(context, text) {
  const key = context.font + text;
  let width = widths.get(key);
  if (width === undefined) {
    if (widths.size > 20000) widths.clear();
    width = context.measureText(text).width;
    widths.set(key, width);
  }
  return width;
}

// The text, or its front and an ellipsis; empty when not even three letters fit.
function fitted(context, text, width) {
  if (text_width(context, text) <= width) return text;
  const letters = Math.floor(text.length * (width / text_width(context, text))) - 1;
  return letters < 3 ? '' : text.slice(0, letters) + '\u2026';
}

// Times for about one mark each `gap` pixels: 1, 2 or 5 of a power of ten.
function time_step(ns_per_pixel, gap) {
  const least = Math.max(ns_per_pixel * gap, 1);
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map(n => n * power).find(step => step >= least * 0.999);
}

function draw_time_axis(context, view, left, width, height) {
  const ns_per_pixel = (view.end - view.begin) / width;
  const step = time_step(ns_per_pixel, 90);
  context.font = '11px ' + FONT;
  for (let i = Math.ceil(view.begin / step); i * step <= view.end; ++i) {
    const x = Math.round(left + (i * step - view.begin) / ns_per_pixel) + 0.5;
    context.fillStyle = colours.grid;
    context.fillRect(x, 20, 1, height - 20);
    const label = point_text(i * step, step);
    const label_width = text_width(context, label);
    if (x + label_width / 2 > left + width) continue;
    context.fillStyle = colours.muted;
    context.fillText(label, Math.max(x - label_width / 2, left + 2), 11);
  }
}

const tip = {
  pinned: false,
  show(x, y, title, rows) {
    const node = by_id('tip');
    node.replaceChildren(element('b', {}, title), element('dl', {}, ...rows.flatMap(
        ([name, value]) => [element('dt', {}, name), element('dd', {}, value)])));
    node.hidden = false;
    const box = node.getBoundingClientRect();
    const left = x + 14 + box.width > innerWidth - 8 ? x - 14 - box.width : x + 14;
    const top = y + 16 + box.height > innerHeight - 8 ? y - 12 - box.height : y + 16;
    node.style.left = Math.max(8, Math.min(left, innerWidth - 8 - box.width)) + 'px';
    node.style.top = Math.max(8, top) + 'px';
  },
  hide() {
    by_id('tip').hidden = true;
    this.pinned = false;
  },
};
