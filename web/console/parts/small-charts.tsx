import { useWords } from '../shell/hooks.js';

const [WIDTH, HEIGHT] = [96, 24];

/** Shows the last seconds of a rate as a line. An unknown value is a gap. */
export function Sparkline({
  values,
  line,
  label,
}: {
  readonly values: readonly (number | null)[];
  readonly line: 1 | 2 | 3;
  readonly label: string;
}) {
  const most = Math.max(1, ...values.map((value) => value ?? 0));
  const step = WIDTH / Math.max(1, values.length - 1);
  const y = (value: number): number => HEIGHT - 1.5 - (value / most) * (HEIGHT - 3);
  let path = '';
  let isDrawing = false;
  values.forEach((value, index) => {
    if (value !== null) path += `${isDrawing ? 'L' : 'M'}${(index * step).toFixed(1)} ${y(value).toFixed(1)}`;
    isDrawing = value !== null;
  });
  return (
    <svg
      class={`sparkline line-${line}`}
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={label}
    >
      <path d={path} />
    </svg>
  );
}

/** Shows where the units of a sale are. */
export function StockBar({
  stock,
  sold,
  held,
  left,
}: {
  readonly stock: number;
  readonly sold: number;
  readonly held: number | null;
  readonly left: number | null;
}) {
  const { t, f } = useWords();
  const share = (units: number): string => `${Math.min(100, (units / Math.max(1, stock)) * 100)}%`;
  return (
    <div class="stock">
      <div class="stock-bar" role="img" aria-label={t.live.soldOf(f.number(sold), f.number(stock))}>
        <i class="sold" style={{ width: share(sold) }} />
        <i class="held" style={{ width: share(held ?? 0) }} />
      </div>
      <div class="stock-words">
        <span>
          <b class="number">{f.number(sold)}</b> {t.live.sold}
        </span>
        {held !== null && held > 0 && (
          <span>
            <b class="number">{f.number(held)}</b> {t.live.held}
          </span>
        )}
        <span class="faint">
          <b class="number">{left === null ? '–' : f.number(left)}</b> {t.live.left}
        </span>
      </div>
    </div>
  );
}
