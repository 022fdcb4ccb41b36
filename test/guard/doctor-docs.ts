import { GROUPS_OF_CHECKS } from '../../src/core/doctor/report.js';
import { SUPPORTED_VERSIONS } from '../../src/core/doctor/versions.js';

const INTRO = `# Doctor

\`seckill doctor\` connects to Redis, MySQL and RocketMQ with the settings of its shell, and says line by line what is right, risky and wrong, and what to do. Run it before a first start, after
each change of a server, and when something is odd.

\`\`\`sh
npm run -s seckill -- doctor
npm run -s seckill -- doctor --json                                        # for programs
npm run -s seckill -- doctor --strict --accept redis.replicas,mysql.binlog # what is risky counts too, but for these
npm run -s seckill -- doctor --program worker                              # with the settings of a worker only
\`\`\`

| a line is | when | exit code |
|---|---|---|
| \`ok\` | nothing is to do | 0 |
| \`?\` (\`unknown\` in JSON) | the server does not show it to us, as many that somebody else runs | 0 |
| \`risky\` | it works, and a loss, an attack or a busy day can hurt | 0; with \`--strict\` 1, unless \`--accept\` names the line |
| \`WRONG\` | a promise is broken, or sales do not work | 1 |

2 is an option that does not exist. \`--json\` prints one line: \`verdict\`, the worst of all, and \`checks\`, each with \`id\`, \`verdict\`, \`says\` and \`todo\` (null where nothing is to do). Scripts go by
the id, which stays; the words may change.

Each server is asked for itself: one that is away, or hangs for ten seconds, costs one line, and the others are looked at. A cluster of Redis, or several brokers, share a line, which names those that are
bad. It reads only, and what every user of a server may read; no secret is printed. It sees the servers from where it runs: run it where the programs run. Addresses behind
other machines, and their disks, it cannot see; RocketMQ says itself how full its disk is.

What it finds wrong in a line marked **start** also keeps api, worker and keeper from starting, with the same sentences: they would do wrong, and not only be slow
([decision 51](decisions/0051-a-doctor-judges-facts.md)).

This page is made from \`src/core/doctor\`: \`npm run generate\`.
`;

/** The page on `seckill doctor`, in Markdown. */
export const renderDoctorDocs = (): string => [INTRO, ...GROUPS_OF_CHECKS.map(renderGroup), versions()].join('\n');

const renderGroup = ({ title, checks }: (typeof GROUPS_OF_CHECKS)[number]): string =>
  [
    `## ${title}`,
    '',
    '| line | looks at | wrong if | risky if |',
    '|---|---|---|---|',
    ...checks.map(({ id, looksAt, wrongIf = '-', riskyIf = '-', stopsPrograms }) => {
      const mark = stopsPrograms === true ? ' **start**' : '';
      return `| \`${id}\`${mark} | ${cell(looksAt)} | ${cell(wrongIf)} | ${cell(riskyIf)} |`;
    }),
    '',
  ].join('\n');

const versions = (): string =>
  [
    '## Versions',
    '',
    'What `…version` and `settings.node` go by. A newer version than those that were tried is risky, not wrong: run the tests on it first.',
    '',
    '| | at least | tried |',
    '|---|---|---|',
    ...Object.values(SUPPORTED_VERSIONS).map(({ name, least, tried, ...more }) => {
      const avoid = 'avoid' in more ? Object.keys(more.avoid) : [];
      return `| ${name} | ${least} | ${tried.join(', ')}${avoid.length === 0 ? '' : `; not ${avoid.join(', ')}`} |`;
    }),
    '',
  ].join('\n');

const cell = (text: string): string => text.replaceAll('|', '\\|');
