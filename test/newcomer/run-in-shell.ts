import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { loadCommandLines, runSeckill } from './command-lines.js';

/**
 * Defines `seckill` in this shell: it sends its arguments to the test, which runs the command and answers with the
 * output.
 */
const SECKILL = `seckill() { printf '%s\\0' "$@" | curl -sS --fail-with-body --data-binary @- "$SECKILL_URL"; }`;

/**
 * Runs commands one after another in one shell, and prints each command as `$ command` first. `seckill` runs in this
 * process, because a separate process would take two seconds of CPU.
 * @param env environment of `seckill`
 * @returns the output
 * @throws if a command fails
 */
export async function runInShell(commands: readonly string[], env: object): Promise<string> {
  await loadCommandLines();
  const server = createServer((request, response) => void answer(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const dir = mkdtempSync(join(tmpdir(), 'seckill-shell-'));
  const before = { dir: process.cwd(), env: process.env };
  process.chdir(dir); // commands name files relative to their shell
  process.env = { ...process.env, ...env };
  const lines = commands.map((command) => `printf '%s\\n' '$ ${command.replaceAll("'", `'\\''`)}'\n${command}`);
  try {
    const shellEnv = {
      ...process.env,
      EDITOR: 'true',
      SECKILL_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    };
    const script = [SECKILL, ...lines].join('\n');
    const { stdout, stderr } = await promisify(execFile)('bash', ['-euo', 'pipefail', '-c', script], { env: shellEnv });
    return stdout + stderr;
  } catch (error) {
    const { message, stdout, stderr } = error as Error & { stdout: string; stderr: string };
    throw new Error(`${stdout}\n${stderr}`.trim() || message, { cause: error });
  } finally {
    process.chdir(before.dir);
    process.env = before.env;
    server.close();
    rmSync(dir, { recursive: true, force: true });
  }
}

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const args = (await text(request)).split('\0').slice(0, -1);
  const { output, exitCode } = await runSeckill(args);
  response.writeHead(exitCode === 0 ? 200 : 422).end(output);
}
