import { Command, InvalidArgumentError, Option } from 'commander';
import { isWorse, type Finding } from '../../core/doctor/check.js';
import { PROGRAM_KINDS, type ProgramKind } from '../../core/ports/program-reports.js';
import { clusterOption } from '../../process/options.js';
import { inLine, print, tableLine } from '../../process/print.js';
import { examine } from './examine.js';
import { CHECK_IDS, type Report } from './report.js';

interface Flags {
  readonly program?: ProgramKind;
  readonly cluster: string | null;
  readonly strict?: boolean;
  readonly accept?: readonly string[];
  readonly json?: boolean;
}

const EXIT_NOT_WELL = 1;

const EXAMPLES = `
Connects to Redis, MySQL and RocketMQ with the settings of this shell, and prints what is right, risky and wrong, and what to do.
It changes nothing. If a server is down, one line says so, and the checks of the other servers go on. docs/doctor.md explains
every line.

Examples:
  seckill doctor
  seckill doctor --json                       for programs: {"verdict": …, "checks": [{"id": …, "verdict": …}, …]}
  seckill doctor --strict                     risks count as errors
  seckill doctor --strict --accept redis.replicas,mysql.binlog
  seckill doctor --program worker             on a machine with the settings of a worker only

Exit codes: 0 nothing is wrong, 1 something is wrong (with --strict also for risks), 2 wrong usage.`;

export function doctorCommand(): Command {
  return new Command('doctor')
    .description('check the settings and every server, and say what to do')
    .addOption(new Option('--program <name>', 'check only what this program needs').choices(PROGRAM_KINDS))
    .addOption(clusterOption())
    .option('--strict', 'exit with 1 also for risks')
    .option('--accept <ids>', 'checks whose risk you accept, separated by commas', parseIds)
    .option('--json', 'print one JSON line')
    .addHelpText('after', EXAMPLES)
    .action(async ({ program, cluster, strict = false, accept = [], json }: Flags) => {
      const programs = program === undefined ? PROGRAM_KINDS : [program];
      const report = await examine(process.env, { programs, cluster, accepted: new Set(accept) });
      if (json) print(JSON.stringify(reportBody(report)));
      else for (const line of reportLines(report)) print(line);
      if (isWorse(report.verdict, strict ? 'unknown' : 'risky')) process.exitCode = EXIT_NOT_WELL;
    });
}

function parseIds(text: string): string[] {
  const ids = text.split(',').map((id) => id.trim());
  const other = ids.find((id) => !CHECK_IDS.includes(id));
  if (other !== undefined) throw new InvalidArgumentError(`"${other}" is not a check. docs/doctor.md lists them.`);
  return ids;
}

export const reportBody = ({ verdict, groups }: Report) => ({
  verdict,
  checks: groups.flatMap(({ findings }) => findings),
});

const MARKS = { ok: 'ok', unknown: '?', risky: 'risky', wrong: 'WRONG' } as const;
const findingLine = tableLine(5, 26);
/** Aligns a suggestion with the sentence to which it belongs. */
const TODO_INDENT = ' '.repeat(2 + 5 + 2 + 26 + 2);

export function reportLines({ groups }: Report): string[] {
  const lines = groups.flatMap(({ title, findings }) => [title, ...findings.flatMap(linesOf), '']);
  return [...lines, sumOf(groups.flatMap(({ findings }) => findings))];
}

const linesOf = ({ id, verdict, says, todo }: Finding): string[] => [
  `  ${findingLine(MARKS[verdict], id, says)}`,
  ...(todo === null ? [] : [`${TODO_INDENT}→ ${inLine(todo)}`]),
];

function sumOf(findings: readonly Finding[]): string {
  const count = (verdict: Finding['verdict']): number => findings.filter((one) => one.verdict === verdict).length;
  const notSeen = count('unknown') === 0 ? '' : `, ${count('unknown')} unknown`;
  return `${count('ok')} ok, ${count('risky')} risky, ${count('wrong')} wrong${notSeen}.`;
}
