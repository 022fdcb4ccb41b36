import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { REPO_DIR } from '../../deploy/local/stack/paths.js';
import {
  allowedMinutes,
  FAULTS,
  minutesInAll,
  minutesPerMonth,
  OBJECTIVES,
} from '../../src/operate/plan/availability.js';
import { figure } from '../../src/operate/plan/commands.js';
import { planFor, type PlanLimit } from '../../src/operate/plan/plan.js';
import { README_COSTS } from '../../src/operate/plan/unit-costs.js';

export const SIZING_PAGE = 'docs/deployment.md';
const [BEGIN, END] = ['<!-- npm run generate writes the lines to the next comment -->', '<!-- end -->'];
const EXAMPLE = { tries: 1_000_000, winners: 100_000, readers: 500_000 };
const PARTS = [
  ['api', 'api'],
  ['worker', 'worker'],
  ['keeper', 'keeper'],
  ['Redis', 'redis'],
  ['MySQL', 'mysql'],
  ['RocketMQ, broker with proxy', 'broker'],
] as const;
/** Rows of the tables. The page has another table of memory and disks. */
const IS_SHOWN = /^(apis|workers|keepers|batch|buckets|Redis|RocketMQ|MySQL|connections of MySQL)$/;

/** Renders the page about sizing, with tables made from the figures of `seckill plan`. */
export function renderSizingDocs(): string {
  const page = readFileSync(join(REPO_DIR, SIZING_PAGE), 'utf8');
  const [begin, end] = [page.indexOf(BEGIN), page.indexOf(END)];
  if (begin < 0 || end < begin) throw new Error(`${SIZING_PAGE} has lost its comments around the tables`);
  const { lines, limits } = planFor(EXAMPLE, README_COSTS);
  const { refusal, read } = README_COSTS;
  const [next] = limits as [PlanLimit];
  const parts = [
    table(
      ['CPU per order, µs of one core', 'in a rush (full batches)', 'alone, whole life'],
      PARTS.map(([name, part]) => [name, figure(README_COSTS[part].full), figure(README_COSTS[part].single)]),
    ),
    `A refusal costs an api ${refusal} µs, and a read of a sale ${read}. The first example needs:`,
    table(
      ['', 'number'],
      lines
        .filter(({ what }) => IS_SHOWN.test(what))
        .map(({ what, value, unit }) => [what, `${figure(value)} ${unit}`.trim()]),
    ),
    `The next bottleneck: ${next.what} (${next.rule}). This load needs ${figure(next.share * 100)} % of it: ${next.todo}.`,
    'How long buyers get 503 on one site where each server has a replica, with assumed yearly counts:',
    table(
      ['fault', 'a year', 's each', 'measured in', 'minutes a month'],
      FAULTS.map((fault) => [
        ...[fault.fault, String(fault.perYear), String(fault.gapS), fault.source],
        figure(minutesPerMonth(fault)),
      ]),
    ),
    `Together ${figure(minutesInAll())} minutes. 99.95 % allows ${figure(allowedMinutes(OBJECTIVES.today))}, 99.99 % only ${figure(allowedMinutes(OBJECTIVES.next))}.`,
  ];
  return `${page.slice(0, begin)}${BEGIN}\n\n${parts.join('\n\n')}\n\n${page.slice(end)}`;
}

const table = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
