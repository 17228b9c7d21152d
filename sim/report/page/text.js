'use strict';
// Numbers and elements. Text from the data becomes text nodes only, never markup.

function scaled(value, units, base, digits = 2) {
  let unit = 0;
  while (unit + 1 < units.length && Math.abs(value) >= base * (1 - 0.5 * 0.1 ** (digits + 3))) {
    value /= base;
    ++unit;
  }
  return (unit === 0 ? String(Math.round(value)) : value.toFixed(digits)) + ' ' + units[unit];
}

const BYTE_UNITS = ['B', 'kB', 'MB', 'GB', 'TB', 'PB', 'EB'];
const bytes_text = bytes => scaled(bytes, BYTE_UNITS, 1000);
const short_bytes_text = bytes => scaled(bytes, BYTE_UNITS, 1000, 0).replace(' ', '\u2009');
const rate_text = rate => bytes_text(rate) + '/s';
const percent_text = thousandths =>
    (thousandths > 0 && thousandths < 10 ? (thousandths / 10).toFixed(1) : String(Math.round(thousandths / 10))) + ' %';
const count_text = count => String(count).replace(/\B(?=(\d{3})+$)/g, ',');

const TIME_UNITS = [[1e9, 's'], [1e6, 'ms'], [1e3, '\u00b5s'], [1, 'ns']];

// A length of time, four digits or a little more.
function time_text(ns) {
  if (ns === null) return 'never';
  if (ns === 0) return '0';
  const [size, name] = TIME_UNITS.find(([size]) => Math.abs(ns) >= size) || [1, 'ns'];
  return Number((ns / size).toPrecision(Math.abs(ns / size) >= 1000 ? 7 : 4)) + ' ' + name;
}

// A point in time in the unit that suits steps of `step` ns, to its last digit.
function point_text(ns, step) {
  if (ns === null) return 'never';
  if (ns === 0) return '0';
  const scale = Math.max(Math.abs(ns), step);
  const [size, name] = TIME_UNITS.find(([size]) => scale >= size) || [1, 'ns'];
  const digits = Math.max(0, Math.min(9, Math.ceil(Math.log10(size / step) - 1e-9)));
  return Number((ns / size).toFixed(digits)) + ' ' + name;
}

function element(tag, properties, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties || {})) {
    if (name.startsWith('aria-') || name.startsWith('data-') || name === 'role') node.setAttribute(name, value);
    else node[name] = value;
  }
  for (const child of children)
    if (child !== null && child !== undefined) node.append(child);
  return node;
}

const by_id = id => document.getElementById(id);
const body_of = id => by_id(id).querySelector('.body');
const note = text => element('p', {className: 'note'}, text);

// columns: {name, cell: row => node or text, number, short, wide}. `stack`: on a narrow page each row becomes a block.
function table(columns, rows, stack) {
  const kind = column => (column.number ? 'number' : column.short ? 'short' : column.wide ? 'wide' : '');
  const head = element('tr', {}, ...columns.map(c => element('th', {className: kind(c), scope: 'col'}, c.name)));
  const body = rows.map(row => element('tr', {}, ...columns.map(
      c => element('td', {className: kind(c), 'data-label': c.name}, c.cell(row)))));
  return element('div', {className: 'scroll' + (rows.length > 14 ? ' tall' : ''), tabIndex: rows.length > 14 ? 0 : -1},
                 element('table', {className: stack ? 'stack' : ''}, element('thead', {}, head),
                         element('tbody', {}, ...body)));
}

function copy_line(text) {
  const code = element('code', {}, text);
  const button = element('button', {type: 'button'}, 'Copy');
  button.addEventListener('click', async () => {
    let done = false;
    try {
      await navigator.clipboard.writeText(text);
      done = true;
    } catch {
      getSelection().selectAllChildren(code);
      done = document.execCommand('copy');
    }
    button.textContent = done ? 'Copied' : 'Select and copy';
    setTimeout(() => { button.textContent = 'Copy'; }, 2000);
  });
  return element('div', {className: 'copyable'}, code, button);
}
