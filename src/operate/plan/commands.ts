import { Command } from 'commander';
import { UsageError } from '../../process/cli-error.js';
import { parseWhole } from '../../process/options.js';
import { print, tableLine } from '../../process/print.js';
import { readText } from '../../process/read-text.js';
import { allowedMinutes, FAULTS, minutesInAll, minutesPerMonth, OBJECTIVES, type Fault } from './availability.js';
import { planFor, type Load, type Plan } from './plan.js';
import { readBenchReport, README_COSTS, type UnitCosts } from './unit-costs.js';

interface Flags extends Load {
  readonly measured?: string;
  readonly json?: boolean;
}

const MOST = 100_000_000;
const count = parseWhole(0, MOST);

const EXAMPLES = `
Computes from measured costs, and connects to no server. Each line names its rule and the source of its figures. Measure your
own costs with \`npm run bench -- win no-group-commit sold-out limits crowd --json > bench.json\` on a machine like yours.

Examples:
  seckill plan --tries 1000000 --winners 100000 --readers 500000
  seckill plan --tries 20000 --winners 1000 --measured bench.json --json

Exit codes: 0 printed, 2 wrong usage or an unreadable file.`;

export function planCommand(): Command {
  return new Command('plan')
    .description('compute the processes and servers that a sale needs, and the limit that it would reach first')
    .requiredOption('--tries <count>', 'purchase attempts per second at the peak', parseWhole(1, MOST))
    .requiredOption('--winners <count>', 'attempts that get a unit, all in the first second', count)
    .option('--readers <count>', 'open sale pages', count, 0)
    .option('--measured <file>', 'report of `npm run bench -- --json` (default: the figures of bench/README.md)')
    .option('--json', 'print one JSON line')
    .addHelpText('after', EXAMPLES)
    .action((flags: Flags) => {
      const plan = planFor(loadOf(flags), costsOf(flags.measured));
      print(flags.json ? JSON.stringify({ ...plan, availability: availability() }) : planText(plan));
    });
}

function loadOf({ tries, winners, readers }: Flags): Load {
  if (winners > tries) throw new UsageError(`--winners ${winners} must not exceed --tries ${tries}.`);
  return { tries, winners, readers };
}

function costsOf(file: string | undefined): UnitCosts {
  if (file === undefined) return README_COSTS;
  const costs = readBenchReport(readText(file));
  if (typeof costs === 'string') throw new UsageError(`${file} ${costs}.`);
  return costs;
}

const availability = () => ({
  faults: FAULTS.map((fault) => ({ ...fault, minutesPerMonth: minutesPerMonth(fault) })),
  minutesPerMonth: minutesInAll(),
  allowedMinutes: { today: allowedMinutes(OBJECTIVES.today), next: allowedMinutes(OBJECTIVES.next) },
});

/** Formats large figures like 1,234 and small figures like 9.6. */
export const figure = (value: number): string =>
  value.toLocaleString('en', value < 100 ? { maximumSignificantDigits: 2 } : { maximumFractionDigits: 0 });

const faultLine = (fault: Fault): string =>
  `  ${figure(minutesPerMonth(fault)).padStart(7)}  ${fault.fault}: ${fault.gapS} s [${fault.source}] × ${fault.perYear} a year [assumed]`;

const column = tableLine(27, 11, 30);

export function planText({ load: { tries, winners, readers }, lines, limits }: Plan): string {
  return [
    `${figure(tries)} tries per second, ${figure(winners)} winners and ${figure(readers)} open pages need:`,
    ...lines.map(({ what, value, unit, rule, source }) =>
      column(`  ${what}`, figure(value).padStart(11), unit, `${rule} [${source}]`),
    ),
    '',
    'Limits in the order in which they are reached, with the share that this load uses:',
    ...limits.flatMap(({ what, share, rule, source, todo }) => [
      `  ${figure(share * 100).padStart(7)} %  ${what}: ${rule} [${source}]`,
      ...(share > 0.5 ? [`            ${todo}`] : []),
    ]),
    '',
    'Minutes a month in which buyers get 503:',
    ...FAULTS.map(faultLine),
    `  ${figure(minutesInAll())} in all; 99.95 % allows ${figure(allowedMinutes(OBJECTIVES.today))}, 99.99 % allows ${figure(allowedMinutes(OBJECTIVES.next))}`,
  ].join('\n');
}
