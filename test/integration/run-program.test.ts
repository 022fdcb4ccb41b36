import { expect } from 'chai';
import { spawn } from 'node:child_process';

const START_TIMEOUT_MS = 60_000;

/** A program that opens a resource, fails in the next part, and has a supervisor. */
const CODE = `
  import { runProgram } from './src/programs/run-program.ts';
  import { silentLog } from './test/helpers/silent-log.ts';
  setInterval(() => undefined, 1000);
  runProgram(silentLog, () => Promise.reject(new Error('refused'))).catch(() => (process.exitCode = 3));
`;

describe('run-program', () => {
  it('ends when its start fails, even with open resources, supervised or not [R9]', async () => {
    const child = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', CODE], {
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
    const timer = setTimeout(() => child.kill('SIGKILL'), START_TIMEOUT_MS - 2_000);
    const code = await new Promise((resolve) => child.once('exit', resolve));
    clearTimeout(timer);
    expect(code).to.equal(3);
  });
});
