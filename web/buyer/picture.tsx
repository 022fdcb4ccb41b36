import type { JSX } from 'preact';

/**
 * Shows the picture of the product. The title names the product, so the picture needs no words.
 * @param url null if there is no picture
 */
export const Picture = ({ sku, url }: { readonly sku: string; readonly url: string | null }): JSX.Element =>
  url === null ? <Landscape sku={sku} /> : <img class="picture" src={url} alt="" />;

/** Draws a landscape for products without a picture. A sku always has the same landscape, in its own colour. */
function Landscape({ sku }: { readonly sku: string }): JSX.Element {
  const seed = hashOf(sku);
  const pick = (shift: number, from: number, to: number): number =>
    from + (((seed >>> shift) & 255) / 255) * (to - from);
  const x = pick(8, 130, 350);
  const y = pick(16, 130, 210);
  return (
    <svg
      class="art"
      viewBox="0 0 480 480"
      preserveAspectRatio="xMidYMid slice"
      aria-hidden="true"
      focusable="false"
      style={{ '--hue': String(hueOf(sku)) }}
    >
      <rect class="sky" width="480" height="480" />
      <circle class="glow" cx={x} cy={y} r="104" />
      <circle class="sun" cx={x} cy={y} r={pick(24, 58, 74)} />
      <path class="far" d={hill(270, pick(4, 30, 62), pick(12, 90, 200))} />
      <path class="mid" d={hill(328, pick(14, 28, 54), pick(2, 200, 330))} />
      <path class="near" d={hill(386, pick(20, 20, 40), pick(6, 60, 160))} />
    </svg>
  );
}

/** Draws a rounded ridge over the whole width, from its height, its rise and fall, and the position of its top. */
function hill(y: number, rise: number, x: number): string {
  const points = [
    [-80, y + rise * 0.4],
    [x, y - rise],
    [(x + 560) / 2, y + rise * 0.7],
    [560, y - rise * 0.2],
  ] as const;
  let path = `M-80 480 L${points[0].join(' ')}`;
  for (let i = 1; i < points.length; i++) {
    const [[x0, y0], [x1, y1]] = [points[i - 1], points[i]] as [readonly [number, number], readonly [number, number]];
    const middle = (x0 + x1) / 2;
    path += ` C${middle} ${y0} ${middle} ${y1} ${x1} ${y1}`;
  }
  return `${path} L560 480 Z`;
}

const hueOf = (sku: string): number => hashOf(`${sku}!`) % 360;

/** FNV-1a with an extra mix of its bits, so that skus that differ in a digit look different. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (const letter of text) hash = Math.imul(hash ^ (letter.codePointAt(0) as number), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
  return (hash ^ (hash >>> 13)) >>> 0;
}
