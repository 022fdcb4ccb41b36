import { GROUPS_OF_CHECKS } from '../../src/operate/doctor/report.js';
import { SUPPORTED_VERSIONS } from '../../src/core/doctor/versions.js';

const INTRO = `# Doctor

\`seckill doctor\` checks Redis, MySQL and RocketMQ with the settings of its shell, and says what to do. Run it where the programs run, before a first start and after each change of a server.

\`\`\`sh
seckill doctor
seckill doctor --json                                        # for scripts
seckill doctor --strict --accept redis.replicas,mysql.binlog # fails on risky lines, except for these
seckill doctor --program worker                              # with the settings of a worker only
\`\`\`

| a line is | when | exit code |
|---|---|---|
| \`ok\` | there is nothing to do | 0 |
| \`?\` (\`unknown\` in JSON) | the server does not tell, like many hosted servers | 0 |
| \`risky\` | it works, but a loss, an attack or a busy day can hurt | 0; 1 with \`--strict\`, unless \`--accept\` names the line |
| \`WRONG\` | a promise is broken, or sales do not work | 1 |

Exit code 2 means an unknown option. \`--json\` prints one line: \`verdict\` (the worst of all) and \`checks\`, each with \`id\`, \`verdict\`, \`says\` and \`todo\` (or null). Ids are stable, the texts may change.

A line about a Redis cluster or several brokers names the faulty ones. The doctor only reads, needs no special rights and prints no secret. On other machines it sees no addresses, and only the disk of RocketMQ.

A wrong line marked **start** also keeps api, worker and keeper from starting, with the same text.

This page is generated from \`src/operate/doctor\` and \`src/core/doctor\`: \`npm run generate\`.
`;

/** Renders the `seckill doctor` page in Markdown. */
export const renderDoctorDocs = (): string => [INTRO, ...GROUPS_OF_CHECKS.map(renderGroup), versions()].join('\n');

const renderGroup = ({ title, checks }: (typeof GROUPS_OF_CHECKS)[number]): string =>
  [
    `## ${title}`,
    '',
    '| line | looks at | wrong if | risky if |',
    '|---|---|---|---|',
    ...checks.map(({ id, looksAt, wrongIf = '', riskyIf = '', stopsPrograms }) => {
      const mark = stopsPrograms === true ? ' **start**' : '';
      return `| \`${id}\`${mark} | ${cell(looksAt)} | ${cell(wrongIf)} | ${cell(riskyIf)} |`;
    }),
    '',
  ].join('\n');

const versions = (): string =>
  [
    '## Versions',
    '',
    'A newer, untested version is risky, not wrong: run the tests on it first.',
    '',
    '| | at least | tested |',
    '|---|---|---|',
    ...Object.values(SUPPORTED_VERSIONS).map(({ name, least, tried, ...more }) => {
      const avoid = 'avoid' in more ? Object.keys(more.avoid) : [];
      return `| ${name} | ${least} | ${tried.join(', ')}${avoid.length === 0 ? '' : `; not ${avoid.join(', ')}`} |`;
    }),
    '',
  ].join('\n');

const cell = (text: string): string => text.replaceAll('|', '\\|');
