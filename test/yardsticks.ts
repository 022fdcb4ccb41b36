import { execFile } from 'node:child_process';
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Command } from 'commander';
import { REPO_DIR } from '../deploy/local/stack/paths.js';
import { openapiOf } from '../src/http/openapi.js';
import { ROUTES } from '../src/programs/routes.js';
import { readScripts } from '../src/redis/scripts.js';
import { publishedMetrics } from './helpers/published-metrics.js';
import { inSimulatedTime } from './simulation/engine/simulated-time.js';
import { hashOf, simulate } from './simulation/run.js';
import { testFiles } from './runner/commands.js';

// Writes everything that a mere move of code must keep byte for byte. Compare two of these folders with `diff -r`. Unit
// tests pin the bytes of messages.

const run = promisify(execFile);

const { into, seeds } = new Command('npm run yardsticks --')
  .description('Writes OpenAPI, --help, metrics, Lua, schema, test titles and simulated traces into a folder.')
  .option('--into <folder>', 'folder to write into', join(REPO_DIR, '.stack/yardsticks'))
  .option('--seeds <n>', 'number of simulated runs whose traces are hashed', Number, 10_000)
  .parse()
  .opts<{ into: string; seeds: number }>();

mkdirSync(into, { recursive: true });
const write = (name: string, lines: readonly string[]): void =>
  writeFileSync(join(into, name), `${lines.join('\n')}\n`);

for (const listener of ['buyers', 'operators'] as const) {
  write(`openapi-${listener}.json`, [JSON.stringify(openapiOf(ROUTES, listener), null, 2)]);
}
write(
  'metrics.txt',
  [...(await publishedMetrics())].map(([name, labels]) => `${name} ${[...labels].sort().join()}`).sort(),
);
write(
  'lua.txt',
  readScripts().map(({ name, numberOfKeys, sha1 }) => `${name} ${numberOfKeys} ${sha1}`),
);
copyFileSync(join(REPO_DIR, 'test/contract/schema.sql'), join(into, 'schema.sql'));
write('help.txt', await helpOf([]));
write('titles.txt', titles());
write('traces.txt', await traces());

/** Returns the help of a command and of all its subcommands. */
async function helpOf(command: readonly string[]): Promise<string[]> {
  const { stdout } = await run(process.execPath, [join(REPO_DIR, 'dist/cli/main.js'), ...command, '--help']);
  const [, listed = ''] = /\nCommands:\n([^]*?)(\n\n|$)/.exec(stdout) ?? [];
  const names = [...listed.matchAll(/^ {2}([a-z][a-z-]*)/gm)].map(([, name = '']) => name);
  const below: string[] = [];
  for (const name of names) if (name !== 'help') below.push(...(await helpOf([...command, name])));
  return [`==== seckill ${command.join(' ')}`, stdout, ...below];
}

/** Returns the titles of suites and tests as they are in the sources. */
function titles(): string[] {
  return testFiles().flatMap((file) => {
    const text = readFileSync(join(REPO_DIR, file), 'utf8');
    return [...text.matchAll(/^ *(?:it|describe)\(\s*(['"`])(.+?)\1/gm)].map(([, , title]) => `${file}: ${title}`);
  });
}

/** Returns a hash for each seed. */
function traces(): Promise<string[]> {
  return inSimulatedTime(async () => {
    const lines: string[] = [];
    for (let seed = 1; seed <= seeds; seed++) lines.push(`${seed} ${hashOf((await simulate(seed, true)).lines)}`);
    return lines;
  });
}
