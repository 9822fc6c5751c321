/* What every report's script is built on: elements, text that hides nothing, and the embedded data.
   HTML is never made from strings; the page's policy would forbid it. */

const SVG = 'http://www.w3.org/2000/svg';

/* element('td', {class: 'number', title: …, onclick: f}, 'text', another, …); null and false are
   left out. A name such as 'svg:path' makes an element of SVG. */
function element(name, attributes = {}, ...children) {
  const made = name.startsWith('svg:')
    ? document.createElementNS(SVG, name.slice(4))
    : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith('on')) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value === true ? '' : String(value));
  }
  made.append(...children.flat(Infinity).filter((one) => one !== null && one !== undefined && one !== false));
  return made;
}

/* Control, bidirectional and other characters that show nothing: as in characters.py. */
const INVISIBLE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u3164\uffa0\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff\u{e0000}-\u{e0fff}]/u;
const INVISIBLE_IN_LINE = new RegExp(INVISIBLE.source.replace('[', '[\\t\\n'), 'u');

function codePoint(character) {
  return 'U+' + character.codePointAt(0).toString(16).toUpperCase().padStart(4, '0');
}

/* Text as nodes: apart from the direction of its surroundings, control characters by name.
   With lines, breaks and tabs stay what they are, for preformatted text. */
function visible(text, { lines = false } = {}) {
  text = String(text);
  if (/^[ -~]*$/.test(text)) return text;
  const pattern = lines ? INVISIBLE : INVISIBLE_IN_LINE;
  const parts = text.split(new RegExp(`(${pattern.source})`, 'u'));
  return element('bdi', {}, parts.map((part, at) =>
    at % 2 ? element('span', { class: 'cp' }, codePoint(part)) : part));
}

/* An id, which may be broken after its commas and colons. */
function idText(id) {
  return id.split(/(?<=[,:/])/).flatMap((part) => [visible(part), element('wbr')]);
}

/* The same for attributes, which hold no elements. */
function spelled(text) {
  return String(text).replace(new RegExp(INVISIBLE_IN_LINE.source, 'gu'), (c) => `⟨${codePoint(c)}⟩`);
}

/* A chunk of the page: its JSON, the doubles and the bytes beside it (page.py has the layout). */
async function unpack(id) {
  const coded = atob(document.getElementById(id).textContent);
  const packed = Uint8Array.from(coded, (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip'));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  const [size, count] = new Uint32Array(bytes.slice(0, 8).buffer);
  const text = new TextDecoder().decode(bytes.subarray(8, 8 + size));
  const planes = bytes.subarray(8 + size, 8 + size + 8 * count);
  const whole = new Uint8Array(8 * count);
  for (let at = 0; at < planes.length; at += 1) whole[(at % count) * 8 + Math.floor(at / count)] = planes[at];
  return {
    values: JSON.parse(text),
    doubles: new Float64Array(whole.buffer),
    bytes: bytes.subarray(8 + size + 8 * count),
  };
}

/* Takes doubles and bytes one after the other. */
class Reader {
  constructor(chunk) {
    this.chunk = chunk;
    this.double = 0;
    this.byte = 0;
  }
  number(value) {
    return value === true ? this.chunk.doubles[this.double++] : value;
  }
  hex(length) {
    const bytes = this.chunk.bytes.subarray(this.byte, this.byte += length);
    return Array.from(bytes, (b) => b.toString(16).padStart(2, '0')).join('');
  }
}

/* The n-th detail. Details of a chunk share its doubles and bytes, so they are read in order, by
   read(value, reader); what was read is kept. */
const chunks = new Map();
function detail(n, perChunk, read) {
  const id = `details-${Math.floor(n / perChunk)}`;
  if (!chunks.has(id)) {
    chunks.set(id, unpack(id).then((chunk) => {
      const reader = new Reader(chunk);
      return chunk.values.map((value) => read(value, reader));
    }));
  }
  return chunks.get(id).then((values) => values[n % perChunk]);
}

/* A button that copies a text; it says that it did. */
function copyButton(text, label = 'copy') {
  const button = element('button', { type: 'button', class: 'copy' }, label);
  button.addEventListener('click', async () => {
    let done = true;
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      done = copyBySelection(text);
    }
    button.textContent = done ? 'copied' : 'press Ctrl+C';
    announce(done ? 'copied' : 'not copied');
    setTimeout(() => { button.textContent = label; }, 1500);
  });
  return button;
}

/* Where the clipboard may not be written, as in files opened by some browsers. */
function copyBySelection(text) {
  const area = element('textarea', { class: 'hidden', readonly: true });
  area.value = text;
  document.body.append(area);
  area.select();
  const done = document.execCommand('copy');
  area.remove();
  return done;
}

/* Tells those who do not see it. */
function announce(text) {
  let live = document.getElementById('live');
  if (!live) {
    live = element('div', { id: 'live', class: 'hidden', role: 'status', 'aria-live': 'polite' });
    document.body.append(live);
  }
  live.textContent = text;
}

/* What is wider than the window scrolls by itself, also by keyboard. */
function scrolled(label, ...children) {
  return element('div', { class: 'scroll', role: 'region', 'aria-label': label, tabindex: 0 }, children);
}

/* The head of a table: names, each alone or with its class. */
function tableHead(names) {
  const cells = names.map((one) => [one].flat()).map(([name, align]) =>
    element('th', { scope: 'col', class: align }, visible(name)));
  return element('thead', {}, element('tr', {}, cells));
}

/* A word of a shell's command line. */
function quoted(word) {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`;
}

/* An address as a link if it is one of the web's, else as text. */
function link(address) {
  if (!/^https?:\/\//i.test(address)) return visible(address);
  return element('a', { href: address, rel: 'noreferrer noopener external' }, visible(address));
}
