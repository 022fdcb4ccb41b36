import { useEffect, useRef, useState } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import type { ChartData } from '../logic/sale-seconds.js';
import { theme } from '../shell/preferences.js';
import { useStore, useWords } from '../shell/hooks.js';

const HEIGHT_PX = 260;
const LINES = ['won', 'landed', 'refused'] as const;
type Line = (typeof LINES)[number];
const COLOURS: Readonly<Record<Line, string>> = { won: '--line-1', landed: '--line-2', refused: '--line-3' };

/**
 * Shows the rush of a sale, one point per second. The values under the pointer are shown above the chart, and the table
 * beside it has all figures.
 */
export function RushChart({ data, label }: { readonly data: ChartData; readonly label: string }) {
  const { t, f } = useWords();
  const colours = useStore(theme);
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const [at, setAt] = useState<number | null>(null);
  const [isDark, setDark] = useState(() => matchMedia('(prefers-color-scheme: dark)').matches);

  useEffect(() => {
    const query = matchMedia('(prefers-color-scheme: dark)');
    const change = (): void => setDark(query.matches);
    query.addEventListener('change', change);
    return () => query.removeEventListener('change', change);
  }, []);

  useEffect(() => {
    const element = box.current;
    if (element === null) return undefined;
    const made = new uPlot(optionsOf(element, f, setAt), columnsOf(data), element);
    plot.current = made;
    const sizes = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height: HEIGHT_PX }));
    sizes.observe(element);
    return () => {
      sizes.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [colours, isDark, f]);
  useEffect(() => plot.current?.setData(columnsOf(data)), [data]);

  const index = at ?? data.seconds.length - 1;
  const second = data.seconds[index];
  const names: Readonly<Record<Line, string>> = {
    won: t.live.accepted,
    landed: t.live.landed,
    refused: t.live.refused,
  };
  return (
    <figure class="chart" aria-label={label}>
      <figcaption>
        {LINES.map((line) => (
          <span key={line} class={`key ${line}`}>
            {names[line]} <b class="number">{shown(data[line][index], f.number)}</b>
          </span>
        ))}
        <span class="faint number">{second === undefined ? '' : f.time(second * 1000)}</span>
      </figcaption>
      <div ref={box} role="img" aria-label={label} />
    </figure>
  );
}

const shown = (value: number | null | undefined, write: (value: number) => string): string =>
  value === null || value === undefined ? '–' : write(value);

const columnsOf = ({ seconds, won, landed, refused }: ChartData): uPlot.AlignedData =>
  [seconds, won, landed, refused] as unknown as uPlot.AlignedData;

function optionsOf(
  element: HTMLElement,
  f: ReturnType<typeof useWords>['f'],
  onPoint: (index: number | null) => void,
): uPlot.Options {
  const style = getComputedStyle(element);
  const colour = (name: string): string => style.getPropertyValue(name).trim();
  const axis = {
    stroke: colour('--text-2'),
    grid: { stroke: colour('--grid'), width: 1 },
    ticks: { show: false },
    font: `11px ${style.fontFamily}`,
  };
  return {
    width: element.clientWidth,
    height: HEIGHT_PX,
    padding: [8, 8, 0, 0],
    legend: { show: false },
    cursor: { y: false, points: { size: 6 } },
    scales: { y: { range: (_plot, _min, max) => [0, Math.max(4, (max ?? 0) * 1.1)] } },
    axes: [
      { ...axis, values: (_plot, splits) => splits.map((seconds) => f.time(seconds * 1000)), space: 80, size: 30 },
      { ...axis, size: 52, values: (_plot, splits) => splits.map((value) => f.compact(value)) },
    ],
    series: [
      {},
      ...LINES.map((line) => ({
        stroke: colour(COLOURS[line]),
        width: line === 'refused' ? 1 : 1.75,
        points: { show: false },
        ...(line === 'won' && { fill: colour('--line-1-area') }),
        ...(line === 'refused' && { dash: [3, 3] }),
      })),
    ],
    hooks: { setCursor: [(plot) => onPoint(plot.cursor.idx ?? null)] },
  };
}
