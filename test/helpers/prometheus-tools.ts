import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { inPath, unpackDebian } from './debian-packages.js';

const run = promisify(execFile);
/** The Debian package of each tool. */
const PACKAGES = { prometheus: 'prometheus', promtool: 'prometheus', amtool: 'prometheus-alertmanager' } as const;
export type Tool = keyof typeof PACKAGES;
const RUN_MAX_MS = 200_000;

/**
 * Finds an installed Prometheus or a checker of Prometheus or Alertmanager, or fetches Debian's once. Must be called
 * before tests that need it.
 * @returns its path, or the reason why there is none
 */
export async function fetchTool(tool: Tool): Promise<{ readonly path: string } | { readonly missing: string }> {
  const installed = inPath(tool);
  if (installed !== undefined) return { path: installed };
  const name = PACKAGES[tool];
  const found = await unpackDebian({ name, packages: [name], withDependencies: false });
  return 'missing' in found ? found : { path: join(found.folder, 'usr/bin', tool) };
}

/** Runs the tool. @returns its output. @throws Error with its output if it finds a mistake or takes too long */
export async function runTool(path: string, args: readonly string[]): Promise<string> {
  try {
    const { stdout, stderr } = await run(path, args, { timeout: RUN_MAX_MS });
    return stdout + stderr;
  } catch (error) {
    const { stdout = '', stderr = '', killed } = error as Record<string, unknown>;
    const why = killed === true ? `took more than ${RUN_MAX_MS} ms` : '';
    throw new Error(`${path} ${args.join(' ')}: ${why}\n${String(stdout)}${String(stderr)}`, { cause: error });
  }
}
