/* Numbers as people read them, as numbers.py does, and as they sort. Of what JSON lacks, "NaN",
   "Infinity" and integers beyond 2^53 come as strings; what does not exist is null. */

const number = (value) => (value === null || value === undefined ? null : Number(value));

/* To 4 significant digits; small integers in full. */
function metric(value) {
  if (value === null || value === undefined) return '';
  const x = Number(value);
  if (Number.isNaN(x)) return 'nan';
  if (!Number.isFinite(x)) return x > 0 ? 'inf' : '-inf';
  if (Number.isInteger(x) && Math.abs(x) < 1e7) return String(x === 0 ? 0 : x);
  return general(x, 4);
}

/* C's %g: digits significant ones, without trailing zeros. */
function general(x, digits) {
  const [mantissa, exponent] = x.toExponential(digits - 1).split('e');
  const e = Number(exponent);
  const trimmed = (text) => (text.includes('.') ? text.replace(/\.?0+$/, '') : text);
  if (e < -4 || e >= digits) {
    return `${trimmed(mantissa)}e${e < 0 ? '-' : '+'}${String(Math.abs(e)).padStart(2, '0')}`;
  }
  return trimmed(x.toFixed(digits - 1 - e));
}

/* The value in full, for titles. */
const exact = (value) => (value === null || value === undefined ? 'none' : Object.is(value, -0) ? '-0' : String(value));

/* For sorting: NaN is worse than infinity. What does not exist stands last either way. */
function order(a, b, sign) {
  const known = (x) => x !== null && x !== undefined;
  if (!known(a) || !known(b)) return known(b) - known(a);
  const rank = (x) => (Number.isNaN(x) ? 1 : 0);
  return sign * (rank(a) - rank(b) || (a < b ? -1 : a > b ? 1 : 0));
}

/* An element of an output: the shortest text that tells it from its neighbours in its dtype. */
function elementText(value, dtype) {
  if (Array.isArray(value)) {
    const part = { ...dtype, kind: 'float' };
    const imaginary = elementText(value[1], part);
    return `${elementText(value[0], part)}${imaginary.startsWith('-') ? '' : '+'}${imaginary}j`;
  }
  if (typeof value !== 'number' || !dtype || dtype.precision === null) return String(value);
  if (value === 0) return Object.is(value, -0) ? '-0' : '0';
  if (!Number.isFinite(value)) return metric(value);
  const exponent = Math.max(Math.floor(Math.log2(Math.abs(value))), dtype.emin);
  const below = Math.abs(value) === 2 ** exponent ? 1 : 0; // the neighbour towards zero is nearer
  const half = 2 ** Math.max(exponent - dtype.precision - below, -1074);
  for (let digits = 1; digits < 17; digits += 1) {
    const text = value.toPrecision(digits);
    if (Math.abs(Number(text) - value) < half) return String(Number(text));
  }
  return String(value);
}

/* The value of an element's bits, given in hexadecimal. */
function valueOf(hex, format) {
  const view = new DataView(new ArrayBuffer(8));
  if (format === 'float64') {
    view.setBigUint64(0, BigInt(`0x${hex}`));
    return view.getFloat64(0);
  }
  const bits = parseInt(hex, 16);
  if (format !== 'float16') {
    view.setUint32(0, format === 'bfloat16' ? bits * 2 ** 16 : bits);
    return view.getFloat32(0);
  }
  const sign = bits >> 15 ? -1 : 1, exponent = (bits >> 10) & 31, mantissa = bits & 1023;
  if (exponent === 31) return mantissa ? NaN : sign * Infinity;
  return sign * (exponent ? 2 ** (exponent - 25) * (1024 + mantissa) : 2 ** -24 * mantissa);
}

/* An element's bits apart by their meaning: [sign, exponent, mantissa] for floats, else nibbles. */
function bitFields(hex, dtype) {
  const bits = Array.from(hex, (digit) => parseInt(digit, 16).toString(2).padStart(4, '0')).join('');
  if (!dtype || dtype.precision === null) return bits.match(/.{1,8}/g) || [];
  const width = dtype.kind === 'complex' ? dtype.bits / 2 : dtype.bits;
  const used = bits.slice(-width), mantissa = dtype.precision - 1, sign = dtype.signed ? 1 : 0;
  return [used.slice(0, sign), used.slice(sign, width - mantissa), used.slice(width - mantissa)].filter(Boolean);
}

const plural = (count, noun) => `${count} ${noun}${count === 1 ? '' : 's'}`;
