import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { reportStackError } from '../../../deploy/local/stack-command.js';
import { REPO_DIR } from '../../../deploy/local/stack/paths.js';
import { StackError } from '../../../deploy/local/stack/stack-error.js';
import { AlertLog } from '../../helpers/alert-log.js';
import { LivePrometheus, SCRAPE_EVERY_S } from '../../helpers/live-prometheus.js';
import { renderTable } from '../../helpers/render-table.js';
import { buildIfOlder } from '../harness/commands.js';
import type { StackControls } from '../harness/stack-controls.js';
import { onOwnStacks } from '../own-stacks.js';
import { FAULTS, type OnCallFault } from './faults.js';
import { firstLines, Looks } from './looks.js';
import { Shop, type Tally } from './shop.js';

/** Options of `chaos on-call`. */
export interface OnCallFlags {
  readonly ordinaryMinutes: number;
  readonly keep?: boolean;
  readonly json?: boolean;
}

const EXIT_RED = 1;
/** Limit for an alert to fire, and to end after its fault. */
const ALERT_MAX_S = 600;
/** Time to watch for alerts after a fault that must cause none. */
const QUIET_S = 90;
const HEADER = ['fault', 'alert', 'fired after s', 'ended after s', 'tries', 'refused', 'slowest ms'];

/** A fault and its alerts. Times in s, since its beginning and since its end. */
interface Row {
  readonly name: string;
  readonly alerts: string;
  readonly firedS: string;
  readonly endedS: string;
  readonly tally: Tally;
  /** Commands of the runbook and the first lines that they printed. */
  readonly looks: readonly { readonly run: string; readonly shows: readonly string[] }[];
  readonly wrong: readonly string[];
}

interface Found {
  readonly rows: readonly Row[];
  /** Figures of the sale at the end. */
  readonly books: string;
  readonly wrong: readonly string[];
}

/**
 * The hour of an on-call engineer: ordinary minutes, then one fault after another, under a real Prometheus with the
 * shipped rules. Prints when each alert fired and ended, how many buyers were refused, and what the runbook's first
 * looks showed. At the end, every invariant must hold.
 * @param names of faults; empty: all
 */
export async function runOnCall(
  names: readonly string[],
  { ordinaryMinutes, keep, json = false }: OnCallFlags,
): Promise<void> {
  const faults = FAULTS.filter(({ name }) => names.length === 0 || names.some((part) => name.includes(part)));
  await reportStackError(false, async (signal) => {
    if (faults.length === 0) throw new StackError(`No fault is called ${names.join(' or ')}.`);
    await buildIfOlder();
    const found = await onOwnStacks({ count: 1, keep, signal }, ([stack]) =>
      onCall(stack as StackControls, faults, ordinaryMinutes, signal),
    );
    const wrong = [
      ...found.rows.flatMap((row) => row.wrong.map((one) => `${row.name}: ${one}`)),
      ...found.wrong.map((one) => `the books: ${one}`),
    ];
    const page = pageOf(found);
    console.log(json ? JSON.stringify({ ...found, wrong }, null, 2) : `\n${page}`);
    console.error(wrong.length === 0 ? 'Green.' : `Red:\n${wrong.map((one) => `  ${one}`).join('\n')}`);
    if (names.length === 0) writeFileSync(join(REPO_DIR, 'bench', 'on-call-report.md'), `# On call\n\n${page}\n`);
    if (wrong.length > 0) process.exitCode = EXIT_RED;
  });
  process.exit();
}

/** Prints a table of all faults, then the looks of each. */
function pageOf({ rows, books }: Found): string {
  const looks = rows.flatMap((row) => (row.looks.length === 0 ? [] : [`${row.name}:`, ...looksOf(row)]));
  return ['```', renderTable(HEADER, rows.map(cellsOf)), '', `At the end: ${books}.`, '', ...looks, '```'].join('\n');
}

const looksOf = ({ looks }: Row): string[] =>
  looks.flatMap(({ run, shows }) => [`  $ ${run}`, ...shows.map((line) => `    ${line}`)]);

const cellsOf = ({ name, alerts, firedS, endedS, tally }: Row): string[] => [
  name,
  alerts,
  firedS,
  endedS,
  ...[tally.tries, tally.refused, tally.slowestMs].map(String),
];

async function onCall(
  stack: StackControls,
  faults: readonly OnCallFault[],
  ordinaryMinutes: number,
  signal: AbortSignal,
): Promise<Found> {
  const shop = await Shop.open(stack);
  const prometheus = await LivePrometheus.start(join(stack.servers.dir, 'prometheus'), shop.targets);
  try {
    if ('missing' in prometheus) throw new StackError(prometheus.missing);
    const watch = new Watch(prometheus, signal);
    const looks = await Looks.open(shop);
    await shop.sell();
    const rows: Row[] = [];
    const add = (row: Row): void => {
      rows.push(row);
      console.error([cellsOf(row).join('  '), ...looksOf(row), ...row.wrong].join('\n'));
    };
    if (ordinaryMinutes > 0) add(await ordinary(shop, watch, ordinaryMinutes));
    for (const fault of faults) add(await tryFault(shop, watch, looks, fault));
    const wrong = await shop.closeBooks().catch((error: unknown) => [String(error)]);
    return { rows, books: shop.books, wrong };
  } finally {
    if (!('missing' in prometheus)) await prometheus.stop();
    await shop.close();
  }
}

/** Reads the alerts at each scrape. Times are seconds since the watch began. */
class Watch {
  readonly log = new AlertLog();
  readonly #prometheus: LivePrometheus;
  readonly #signal: AbortSignal;
  readonly #begunMs = performance.now();

  constructor(prometheus: LivePrometheus, signal: AbortSignal) {
    this.#prometheus = prometheus;
    this.#signal = signal;
  }

  get nowS(): number {
    return Math.round((performance.now() - this.#begunMs) / 1000);
  }

  /** Watches until the condition holds. @returns whether it held in time */
  async until(holds: () => boolean, maxS: number): Promise<boolean> {
    const endS = this.nowS + maxS;
    for (;;) {
      this.log.take(await this.#prometheus.alerts(), this.nowS);
      if (holds()) return true;
      if (this.nowS >= endS) return false;
      await sleep(SCRAPE_EVERY_S * 1000, undefined, { signal: this.#signal });
    }
  }

  /** Alerts that have fired since a time, including alerts that have ended. */
  firedSince(atS: number): AlertLog['fired'] {
    return this.log.fired.filter(({ firedS }) => firedS >= atS);
  }
}

/** Alerts over hours fire at once in a young Prometheus, and end half an hour after the fault. */
const isSlow = (name: string): boolean => name.endsWith('Slowly');

async function ordinary(shop: Shop, watch: Watch, minutes: number): Promise<Row> {
  await watch.until(() => false, minutes * 60);
  const fired = watch.log.fired.map(({ name }) => name);
  const tally = shop.take();
  const wrong = [
    ...fired.map((name) => `${name} fired`),
    ...(tally.refused > 0 ? [`${tally.refused} buyers refused`] : []),
  ];
  return {
    name: `${minutes} ordinary minutes`,
    alerts: fired.join(' '),
    firedS: '',
    endedS: '',
    tally,
    looks: [],
    wrong,
  };
}

async function tryFault(shop: Shop, watch: Watch, looks: Looks, fault: OnCallFault): Promise<Row> {
  const { name, alerts, refusedMax = Infinity, waitMaxMs = Infinity } = fault;
  const wrong: string[] = [];
  shop.take();
  const begunS = watch.nowS;
  await fault.begin(shop).catch((error: unknown) => wrong.push(String(error)));
  const expected = (): AlertLog['fired'] => watch.firedSince(begunS).filter((one) => alerts.includes(one.name));
  const hasFired =
    alerts.length === 0
      ? await watch.until(() => false, QUIET_S)
      : await watch.until(() => expected().length > 0, ALERT_MAX_S);
  const shown: { run: string; shows: string[] }[] = [];
  for (const { run, says } of fault.looks ?? []) {
    const output = await looks.run(run);
    if (!says.test(output)) wrong.push(`the look "${run}" does not say ${says}: ${output.slice(0, 1000)}`);
    shown.push({ run, shows: firstLines(output) });
  }
  await fault.end?.(shop);
  const endedS = watch.nowS;
  const hasEnded = await watch.until(
    () => watch.firedSince(begunS).every((one) => one.clearedS !== null || isSlow(one.name)),
    ALERT_MAX_S,
  );
  await shop.untilReconciled().catch((error: unknown) => wrong.push(String(error)));
  const tally = shop.take();
  const fired = watch.firedSince(begunS);
  if (alerts.length > 0 && !hasFired) wrong.push(`none of ${alerts.join(', ')} fired within ${ALERT_MAX_S} s`);
  if (alerts.length === 0 && fired.length > 0) wrong.push(`${fired.map((one) => one.name).join(', ')} fired`);
  if (!hasEnded) wrong.push(`an alert still fires ${ALERT_MAX_S} s after the fault`);
  if (tally.refused > refusedMax) wrong.push(`${tally.refused} buyers refused`);
  if (tally.slowestMs > waitMaxMs) wrong.push(`a buyer waited ${tally.slowestMs} ms`);
  return {
    name,
    alerts: fired.map((one) => one.name).join(' '),
    firedS: fired.map((one) => one.firedS - begunS).join(' '),
    endedS: fired.map((one) => (one.clearedS === null ? 'not' : one.clearedS - endedS)).join(' '),
    tally,
    looks: shown,
    wrong,
  };
}
