import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { BOARDS } from '../../deploy/grafana/boards.js';
import { reportStackError } from '../../deploy/local/stack-command.js';
import { REPO_DIR } from '../../deploy/local/stack/paths.js';
import { StackError } from '../../deploy/local/stack/stack-error.js';
import { AlertLog, type FiredAlert } from '../helpers/alert-log.js';
import { DemoRun, type DemoUp } from '../helpers/demo-run.js';
import { LivePrometheus, SCRAPE_EVERY_S, type Series, type Target } from '../helpers/live-prometheus.js';
import { shownIn } from '../helpers/published-metrics.js';
import { renderTable } from '../helpers/render-table.js';

/** Options of `chaos demo`. */
export interface DemoFlags {
  readonly minutes: number;
  readonly keep?: boolean;
}

/** An expression of a board, and its result. */
interface BoardLine {
  readonly board: string;
  readonly panel: string;
  readonly legend: string;
  readonly expr: string;
  /** Number of lines in the graph. */
  readonly series: number;
  /** Null if there is data and each line has a name. */
  readonly wrong: string | null;
}

const EXIT_RED = 1;
const MINUTE_MS = 60_000;
const DIR = join(REPO_DIR, '.stack-chaos-demo');
/** Alerts that the faults of the demo must fire and clear. */
const EXPECTED_ALERTS = ['SeckillDeadLetterParked'];
/** The smallest rate interval of Grafana: four scrapes. */
const RATE_INTERVAL = `${4 * SCRAPE_EVERY_S}s`;

/**
 * Runs `npm start -- --traffic --faults` under a real Prometheus, and reports which alerts fire and clear and whether
 * each board shows something.
 */
export async function runDemo({ minutes, keep }: DemoFlags): Promise<void> {
  await reportStackError(false, async (signal) => {
    rmSync(DIR, { recursive: true, force: true });
    const demo = new DemoRun(DIR, ['--traffic', '--faults'], (line) => {
      if (typeof line === 'string') console.log(line);
    });
    signal.addEventListener('abort', () => demo.interrupt(), { once: true });
    let seen: { readonly alerts: readonly FiredAlert[]; readonly lines: readonly BoardLine[] };
    try {
      seen = await watch(await demo.up(), minutes * MINUTE_MS, signal);
    } finally {
      demo.interrupt();
      await demo.ended();
      if (!keep) rmSync(DIR, { recursive: true, force: true });
    }
    const { alerts, lines } = seen;
    const books = demo.found('books');
    const wrong = problemsOf(alerts, lines, books?.right === true && demo.exitCode === 0);
    console.log(`\n${renderTable(['alert', 'fired s', 'cleared s'], alerts.map(alertCells))}`);
    const withData = lines.filter((line) => line.wrong === null).length;
    console.log(`\nBoards: ${withData} of ${lines.length} expressions have data and named lines.`);
    console.log(wrong.length === 0 ? '\nGreen.' : `\nRed:\n${wrong.map((one) => `  ${one}`).join('\n')}`);
    if (wrong.length > 0) process.exitCode = EXIT_RED;
  });
  process.exit();
}

const alertCells = ({ name, about, firedS, clearedS }: FiredAlert): string[] => [
  `${name} ${about}`.trimEnd(),
  String(firedS),
  clearedS === null ? 'not' : String(clearedS),
];

/**
 * Lets Prometheus watch all programs for this time.
 * @throws StackError if there is no Prometheus, or the reason of `signal`
 */
async function watch({ operatorsUrl, metricsUrls }: DemoUp, forMs: number, signal: AbortSignal) {
  const [workerUrl, keeperUrl] = metricsUrls;
  const targets = Object.entries({ api: operatorsUrl, worker: workerUrl, keeper: keeperUrl }).map(
    ([program, url]): Target => ({ program: program as Target['program'], address: new URL(String(url)).host }),
  );
  const prometheus = await LivePrometheus.start(join(DIR, 'prometheus'), targets);
  if ('missing' in prometheus) throw new StackError(prometheus.missing);
  try {
    const [sinceMs, begunMs] = [Date.now(), performance.now()];
    const alerts = new AlertLog();
    while (performance.now() - begunMs < forMs) {
      await sleep(SCRAPE_EVERY_S * 1000, undefined, { signal });
      alerts.take(await prometheus.alerts(), Math.round((performance.now() - begunMs) / 1000));
    }
    return { alerts: alerts.fired, lines: await boardLines(prometheus, sinceMs) };
  } finally {
    await prometheus.stop();
  }
}

async function boardLines(prometheus: LivePrometheus, sinceMs: number): Promise<BoardLine[]> {
  const found: BoardLine[] = [];
  for (const { uid, rows } of BOARDS) {
    for (const { title, lines } of rows.flatMap(({ panels }) => panels)) {
      for (const [legend, expr] of Object.entries(lines)) {
        const asked = expr.replaceAll('$__rate_interval', RATE_INTERVAL).replaceAll('$sale', '.+');
        const series = await prometheus.range(asked, sinceMs);
        const about = { board: uid, panel: title, legend, expr, series: series.length };
        found.push({ ...about, wrong: flawOf(series, shownIn(legend)) });
      }
    }
  }
  return found;
}

/** @param shown labels in the legend @returns null if there is data and each line has a name */
function flawOf(series: readonly Series[], shown: readonly string[]): string | null {
  const drawn = series.filter(({ values }) => values.some((value) => Number.isFinite(value)));
  if (drawn.length === 0) return 'no data';
  const nameless = shown.find((label) => drawn.some(({ labels }) => labels[label] === undefined));
  return nameless === undefined ? null : `a line has no label ${nameless}`;
}

/**
 * Panels that may be empty, because their event does not happen in the demo. A guard checks that a panel uses only
 * labels of its metric.
 */
const NOTHING_HAPPENS: Readonly<Record<string, string>> = {
  'Missing before the start': 'each sale is ready when it is announced',
  'By limit': 'the rules have no limits',
  'Refused by a breaker': 'the rules have no breakers',
  'Degraded answers': 'no switch is set',
  'Set aside for sales in repair': 'Redis loses nothing',
  'Repairs of sales': 'Redis loses nothing',
  'Jobs that failed': 'every server answers the keeper',
  'Days until Redis is full': 'a day has to pass',
};

/** Returns a sentence for everything that contradicts the documentation. */
function problemsOf(alerts: readonly FiredAlert[], lines: readonly BoardLine[], right: boolean): string[] {
  const cleared = (name: string): boolean => alerts.some((alert) => alert.name === name && alert.clearedS !== null);
  return [
    ...(right ? [] : ['Redis and MySQL differ, or npm start failed']),
    ...EXPECTED_ALERTS.filter((name) => !cleared(name)).map((name) => `${name} did not fire and clear`),
    ...lines
      .filter(({ panel, wrong }) => wrong !== null && NOTHING_HAPPENS[panel] === undefined)
      .map(({ board, panel, legend, wrong, expr }) => `${board}, ${panel}, ${legend}: ${wrong}: ${expr}`),
    ...lines
      .filter(({ panel, wrong }) => wrong === null && NOTHING_HAPPENS[panel] !== undefined)
      .map(({ board, panel }) => `${board}, ${panel} has data now: remove it from the list of panels without data`),
  ];
}
