import { expect } from 'chai';
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { REPO_DIR } from '../../../deploy/local/stack/paths.js';
import { pause, until } from '../../chaos/harness/wait.js';

const LAUNCHER = `
  import { onNpmEnd } from ${JSON.stringify(join(REPO_DIR, 'deploy/local/npm-watch.ts'))};
  setInterval(() => undefined, 1000);
  onNpmEnd(new AbortController().signal, () => process.stdout.write('npm has ended\\n', () => process.exit()));
  process.stdout.write('the launcher ' + process.pid + ' runs\\n');
`;
/** Starts a shell with the script, as npm does. */
const NPM = `
  process.stdout.write('npm ' + process.pid + ' runs\\n');
  require('node:child_process').spawn('sh', ['-c', process.env.npm_lifecycle_script], { stdio: 'inherit' });
  setInterval(() => undefined, 1000);
`;
/** Longer than the pause between two checks of npm. */
const LOOK_MS = 1000;

describe('the watch on npm', () => {
  let folder: string;
  let terminal: ChildProcess;
  let printed = '';
  const pidOf = (name: string): number => Number(new RegExp(`${name} (\\d+) runs`).exec(printed)?.[1]);

  beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'seckill-npm-'))));
  afterEach(() => {
    for (const name of ['npm', 'launcher'])
      try {
        process.kill(pidOf(name), 'SIGKILL');
      } catch {
        // it has ended
      }
    rmSync(folder, { recursive: true });
  });

  async function start(before: string, after: string): Promise<void> {
    const file = join(folder, 'launcher.ts');
    writeFileSync(file, LAUNCHER);
    writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
    const script = `${before}${process.execPath} --import tsx ${file} up${after}`;
    const env = { ...process.env, NPM, npm_lifecycle_event: 'start', npm_lifecycle_script: script };
    printed = '';
    terminal = spawn('sh', ['-c', `${process.execPath} -e "$NPM" & wait`], { cwd: REPO_DIR, env });
    terminal.stdout?.setEncoding('utf8').on('data', (text: string) => (printed += text));
    await until('the launcher runs', () => pidOf('launcher') > 0);
  }

  for (const [shell, before, after] of [
    ['whose shell stays', '', '; exit $?'],
    ['whose shell becomes the launcher', 'exec ', ''],
  ] as const)
    it(`ends the launcher of an npm ${shell} if npm is killed, but not with the terminal`, async () => {
      await start(before, after);
      terminal.kill('SIGKILL');
      await pause(LOOK_MS);
      expect(printed).not.to.include('npm has ended');
      process.kill(pidOf('npm'), 'SIGKILL');
      await until('the launcher has noticed', () => printed.includes('npm has ended'));
    });
});
