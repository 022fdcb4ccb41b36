import type { Facts } from '../report.js';
import type { ScenarioResult } from '../run-scenario.js';
import type { ScenarioFigures } from '../scenario-sales.js';
import { FAULT_KINDS, type FaultReport } from './faults.js';
import { median, type Verdict } from '../long/flatness.js';
import type { Soak } from './soak.js';

export const SOAK_HEADER = ['figure', 'value'] as const;

const MIB = 1024 * 1024;
const count = (value: number): string => value.toLocaleString('en');
const seconds = (ms: number): string => (ms / 1000).toFixed(1);

type Line = readonly [figure: string, value: string];

/** The figures of a soak, one per line. */
export function soakLines(soak: Soak, { figures, seed }: ScenarioResult, minutes: number): Line[] {
  const figureOf = (name: keyof ScenarioFigures): string => (figures === null ? '–' : count(figures[name]));
  const { buyers, invalidRequests, sales, faults, verdicts } = soak;
  return [
    ['minutes', String(minutes)],
    ['seed', String(seed)],
    ['sales (of them sold out and followed by the next)', `${sales.opened} (${sales.soldOut})`],
    ['requests', figureOf('requests')],
    ['202s', figureOf('accepted')],
    ['orders', figureOf('orders')],
    ['paid, cancelled', `${count(buyers.paid)}, ${count(buyers.cancelled)}`],
    ['repeated with the same key after a 2xx', count(buyers.repeated)],
    ['invalid requests', count(invalidRequests.sent)],
    ['failed rows', figureOf('failedRows')],
    ['oversold', figureOf('oversold')],
    ['duplicates', figureOf('duplicates')],
    ['lost', figureOf('lost')],
    ['faults', count(faults.length)],
    ...recoveryLines(faults),
    ...verdicts.map(verdictLine),
  ];
}

function recoveryLines(faults: readonly FaultReport[]): Line[] {
  const timesOf = (some: readonly FaultReport[]): string => {
    const accepted = some.map(({ acceptedMs }) => acceptedMs);
    const orders = some.map(({ orderedMs }) => orderedMs);
    return (
      `accepted again ${seconds(median(accepted))}, worst ${seconds(Math.max(...accepted))} s; ` +
      `orders again ${seconds(median(orders))}, worst ${seconds(Math.max(...orders))} s`
    );
  };
  const kinds = FAULT_KINDS.flatMap((kind): Line[] => {
    const some = faults.filter((fault) => fault.kind === kind);
    return some.length === 0 ? [] : [[`  ${kind} × ${some.length}`, timesOf(some)]];
  });
  return faults.length === 0 ? [] : [...kinds, ['recovery, median', timesOf(faults)]];
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
export function soakSentence(soak: Soak, { figures, outcome, reason }: ScenarioResult, minutes: number): string {
  const judged = soak.verdicts.some(({ what }) => what.endsWith('memory') && what.startsWith('keeper'));
  const memory = judged ? 'memory, handles and connections flat' : 'too short to judge memory';
  const counts =
    figures === null
      ? 'Redis or MySQL could not be read'
      : `${figures.oversold} oversold, ${figures.duplicates} duplicate, ${figures.lost} lost`;
  const ran = `${minutes} ${minutes === 1 ? 'minute' : 'minutes'} and ${soak.faults.length} faults`;
  return outcome === 'green' ? `${counts}, ${memory} in ${ran}` : `RED after ${ran}, ${counts}: ${reason}`;
}

interface SoakPageParts {
  readonly soak: Soak;
  readonly result: ScenarioResult;
  readonly minutes: number;
  readonly facts: Facts;
  readonly date: string;
  /** The command that repeats it. */
  readonly again: string;
}

/** The page that `--report` writes. */
export function soakPage({ soak, result, minutes, facts, date, again }: SoakPageParts): string {
  const versions = Object.entries(facts.versions).map(([name, version]) => `${name} ${version}`);
  const lines = [
    '# Soak report',
    '',
    `**${soakSentence(soak, result, minutes)}**`,
    '',
    `${date}, ${Math.round(result.tookMs / 1000)} s in all. ${versions.join(', ')}. ${facts.machine}.`,
    `The same faults again: \`${again}\`. What each figure means: [docs/chaos.md](../docs/chaos.md#soak).`,
    '',
    '| figure | value |',
    '| --- | ---: |',
    ...soakLines(soak, result, minutes).map(([figure, value]) => `| ${figure.trim()} | ${value} |`),
    '',
    '## Faults, in their order',
    '',
    '| s | fault | accepted again after s | orders again after s |',
    '| ---: | --- | ---: | ---: |',
    ...soak.faults.map((fault) => `| ${faultCells(fault).join(' | ')} |`),
  ];
  return `${lines.join('\n')}\n`;
}

/** When, what, and how long until purchases were accepted and became orders again. */
export function faultCells({ atMs, kind, stallMs, acceptedMs, orderedMs }: FaultReport): string[] {
  const what = stallMs > 0 ? `${kind} (${seconds(stallMs)} s)` : kind;
  return [String(Math.round(atMs / 1000)), what, seconds(acceptedMs), seconds(orderedMs)];
}
