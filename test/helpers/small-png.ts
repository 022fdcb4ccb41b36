import { crc32, deflateSync, inflateSync } from 'node:zlib';

const SIGNATURE = Buffer.from([137, 80, 78, 71, 13, 10, 26, 10]);
const COLOURS_MAX = 256;

/**
 * A screenshot with 256 colours instead of millions, a third as large: pages have few colours and their shades at the edges
 * of letters. The colours of areas stay as they are.
 * @param png as Chromium writes it: 8 bits, RGB or RGBA, not interlaced
 */
export function smallPng(png: Buffer): Buffer {
  const { width, height, pixels } = decode(png);
  const { palette, indexes } = reduced(pixels);
  const rows = Buffer.alloc(height * (width + 1)); // each begins with its filter: none
  for (let y = 0; y < height; y++) rows.set(indexes.subarray(y * width, (y + 1) * width), y * (width + 1) + 1);
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([8, 3, 0, 0, 0], 8); // 8 bits, palette
  return Buffer.concat([
    SIGNATURE,
    chunk('IHDR', head),
    chunk('PLTE', Buffer.from(palette.flatMap((colour) => [colour >> 16, (colour >> 8) & 255, colour & 255]))),
    chunk('IDAT', deflateSync(rows, { level: 9 })),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const [length, check] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  check.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, check]);
}

interface Pixels {
  readonly width: number;
  readonly height: number;
  /** 0xRRGGBB */
  readonly pixels: Uint32Array;
}

function decode(png: Buffer): Pixels {
  const [width, height, depth, kind] = [png.readUInt32BE(16), png.readUInt32BE(20), png[24], png[25]];
  if (depth !== 8 || (kind !== 2 && kind !== 6))
    throw new Error(`not a PNG of Chromium: ${depth} bits, colour type ${kind}`);
  const parts: Buffer[] = [];
  for (let at = 8; at < png.length;) {
    const length = png.readUInt32BE(at);
    if (png.toString('latin1', at + 4, at + 8) === 'IDAT') parts.push(png.subarray(at + 8, at + 8 + length));
    at += length + 12;
  }
  const size = kind === 2 ? 3 : 4;
  const bytes = unfiltered(inflateSync(Buffer.concat(parts)), width * size, size);
  const pixels = Uint32Array.from({ length: width * height }, (_, i) => bytes.readUIntBE(i * size, 3));
  return { width, height, pixels };
}

/** Undoes the filters of PNG (RFC 2083, 6). */
function unfiltered(lines: Buffer, rowBytes: number, size: number): Buffer {
  const rows = lines.length / (rowBytes + 1);
  const out = Buffer.alloc(rows * rowBytes);
  for (let y = 0; y < rows; y++) {
    const filter = lines[y * (rowBytes + 1)];
    for (let x = 0; x < rowBytes; x++) {
      const at = y * rowBytes + x;
      const left = x >= size ? (out[at - size] as number) : 0;
      const up = y > 0 ? (out[at - rowBytes] as number) : 0;
      const corner = x >= size && y > 0 ? (out[at - rowBytes - size] as number) : 0;
      const guess = [0, left, up, (left + up) >> 1, nearest(left, up, corner)][filter as number] as number;
      out[at] = (lines[y * (rowBytes + 1) + 1 + x] as number) + guess;
    }
  }
  return out;
}

function nearest(left: number, up: number, corner: number): number {
  const [toLeft, toUp, toCorner] = [left, up, corner].map((value) => Math.abs(left + up - corner - value)) as [
    number,
    number,
    number,
  ];
  if (toLeft <= toUp && toLeft <= toCorner) return left;
  return toUp <= toCorner ? up : corner;
}

/** The most frequent colours; every other one is shown as the nearest of them. */
function reduced(pixels: Uint32Array): { readonly palette: readonly number[]; readonly indexes: Uint8Array } {
  const counts = new Map<number, number>();
  for (const colour of pixels) counts.set(colour, (counts.get(colour) ?? 0) + 1);
  const byCount = [...counts].sort(([, a], [, b]) => b - a).map(([colour]) => colour);
  const palette = byCount.slice(0, COLOURS_MAX);
  const places = new Map(
    byCount.map((colour, index) => [colour, index < COLOURS_MAX ? index : nearestIn(palette, colour)]),
  );
  return { palette, indexes: Uint8Array.from(pixels, (colour) => places.get(colour) as number) };
}

function nearestIn(palette: readonly number[], colour: number): number {
  let [best, bestDistance] = [0, Infinity];
  for (const [index, other] of palette.entries()) {
    const [red, green, blue] = [16, 8, 0].map((shift) => ((colour >> shift) & 255) - ((other >> shift) & 255)) as [
      number,
      number,
      number,
    ];
    const distance = red * red + green * green + blue * blue;
    if (distance < bestDistance) [best, bestDistance] = [index, distance];
  }
  return best;
}
