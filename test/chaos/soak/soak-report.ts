import type { Facts } from '../report.js';
import type { RowFigures, RowResult } from '../scenario.js';
import { FAULT_KINDS, type FaultTold } from './faults.js';
import { median, type Verdict } from './flatness.js';
import type { Soak } from './soak.js';

export const SOAK_HEADER = ['figure', 'value'] as const;

const MIB = 1024 * 1024;
const count = (value: number): string => value.toLocaleString('en');
const seconds = (ms: number): string => (ms / 1000).toFixed(1);

type Line = readonly [figure: string, value: string];

/** Everything that a soak came to, one figure a line. */
export function soakLines(soak: Soak, { figures, seed }: RowResult, minutes: number): Line[] {
  const told = (name: keyof RowFigures): string => (figures === null ? '–' : count(figures[name]));
  const { crowd, hostile, sales, faults, verdicts } = soak;
  return [
    ['minutes', String(minutes)],
    ['seed', String(seed)],
    ['sales (of them sold out and followed by the next)', `${sales.opened} (${sales.soldOut})`],
    ['requests', told('requests')],
    ['202s', told('accepted')],
    ['orders', told('orders')],
    ['paid, cancelled', `${count(crowd.paid)}, ${count(crowd.cancelled)}`],
    ['asked again with the same key after a yes', count(crowd.askedAgain)],
    ['hostile requests', count(hostile.sent)],
    ['failed rows', told('failedRows')],
    ['oversold', told('oversold')],
    ['duplicates', told('duplicates')],
    ['lost', told('lost')],
    ['faults', count(faults.length)],
    ...recoveryLines(faults),
    ...verdicts.map(verdictLine),
  ];
}

function recoveryLines(faults: readonly FaultTold[]): Line[] {
  const told = (some: readonly FaultTold[]): string => {
    const yes = some.map(({ yesMs }) => yesMs);
    const orders = some.map(({ ordersMs }) => ordersMs);
    return (
      `yes again ${seconds(median(yes))}, worst ${seconds(Math.max(...yes))} s; ` +
      `orders again ${seconds(median(orders))}, worst ${seconds(Math.max(...orders))} s`
    );
  };
  const kinds = FAULT_KINDS.flatMap((kind): Line[] => {
    const some = faults.filter((fault) => fault.kind === kind);
    return some.length === 0 ? [] : [[`  ${kind} × ${some.length}`, told(some)]];
  });
  return faults.length === 0 ? [] : [...kinds, ['recovery, median', told(faults)]];
}

function verdictLine({ what, unit, first, last, flat }: Verdict): Line {
  const grown = flat ? '' : '  NOT FLAT';
  switch (unit) {
    case 'bytes':
      return [what, `${(first / MIB).toFixed(1)} → ${(last / MIB).toFixed(1)} MiB${grown}`];
    case 'count':
      return [what, `${first} → ${last}${grown}`];
    case 'bytes per order':
    case 'keys per order':
      return [what, `${last} ${unit}${grown}`];
  }
}

/** `0 oversold, 0 duplicates, 0 lost, memory flat: 15 minutes, 44 faults`, or why it is red. */
export function soakSentence(soak: Soak, { figures, outcome, reason }: RowResult, minutes: number): string {
  const judged = soak.verdicts.some(({ what }) => what.endsWith('memory') && what.startsWith('keeper'));
  const memory = judged ? 'memory, handles and connections flat' : 'too short to judge memory';
  const books =
    figures === null
      ? 'its books could not be read'
      : `${figures.oversold} oversold, ${figures.duplicates} duplicate, ${figures.lost} lost`;
  const ran = `${minutes} ${minutes === 1 ? 'minute' : 'minutes'} and ${soak.faults.length} faults`;
  return outcome === 'green' ? `${books}, ${memory} in ${ran}` : `RED after ${ran}, ${books}: ${reason}`;
}

export interface SoakPageParts {
  readonly soak: Soak;
  readonly result: RowResult;
  readonly minutes: number;
  readonly facts: Facts;
  readonly date: string;
  /** The command that repeats it. */
  readonly again: string;
}

/** The page that `--report` leaves. */
export function soakPage({ soak, result, minutes, facts, date, again }: SoakPageParts): string {
  const versions = Object.entries(facts.versions).map(([name, version]) => `${name} ${version}`);
  const lines = [
    ...['# Soak report', '', `**${soakSentence(soak, result, minutes)}**`, ''],
    `${date}, ${Math.round(result.tookMs / 1000)} s in all. ${versions.join(', ')}. ${facts.machine}.`,
    `The same faults again: \`${again}\`. What each figure means: [docs/chaos.md](../docs/chaos.md#soak).`,
    ...['', '| figure | value |', '| --- | ---: |'],
    ...soakLines(soak, result, minutes).map(([figure, value]) => `| ${figure.trim()} | ${value} |`),
    ...['', '## Faults, in their order', '', '| s | fault | yes again after s | orders again after s |'],
    '| ---: | --- | ---: | ---: |',
    ...soak.faults.map((fault) => `| ${faultCells(fault).join(' | ')} |`),
  ];
  return `${lines.join('\n')}\n`;
}

/** When, what, and how long buyers waited for yes and for orders. */
export function faultCells({ atMs, kind, stallMs, yesMs, ordersMs }: FaultTold): string[] {
  const what = stallMs > 0 ? `${kind} (${seconds(stallMs)} s)` : kind;
  return [String(Math.round(atMs / 1000)), what, seconds(yesMs), seconds(ordersMs)];
}
