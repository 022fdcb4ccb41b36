import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
/** The package of Debian that has each tool. */
const PACKAGES = { promtool: 'prometheus', amtool: 'prometheus-alertmanager' } as const;
export type Tool = keyof typeof PACKAGES;
/** Beside the other servers that tests fetch once. */
const FOLDER = new URL('../../.stack/artifacts/', import.meta.url).pathname;
/** A package of some 40 MB. */
const FETCH_MAX_MS = 180_000;
const RUN_MAX_MS = 200_000;

/**
 * A checker that comes with Prometheus or its Alertmanager: one that is installed, or Debian's, unpacked beside the other servers.
 * @returns its path, or why there is none
 */
export async function findTool(tool: Tool): Promise<{ readonly path: string } | { readonly missing: string }> {
  const name = PACKAGES[tool];
  const unpacked = join(FOLDER, `debian-${name}`);
  const installed = (process.env.PATH ?? '').split(delimiter).map((folder) => join(folder, tool));
  const path = [...installed, join(unpacked, 'usr/bin', tool)].find((file) => existsSync(file));
  if (path !== undefined) return { path };
  const work = mkdtempSync(join(tmpdir(), `${tool}-`));
  mkdirSync(unpacked, { recursive: true });
  const script = 'apt-get download "$1" || (apt-get update -qq && apt-get download "$1"); dpkg-deb -x "$1"_*.deb "$2"';
  try {
    await run('sh', ['-ec', script, 'sh', name, unpacked], { cwd: work, timeout: FETCH_MAX_MS });
    return { path: join(unpacked, 'usr/bin', tool) };
  } catch (error) {
    const { stderr = '' } = error as { readonly stderr?: string };
    return { missing: `${tool} is not installed, and the package ${name} of Debian cannot be had: ${stderr.trim()}` };
  } finally {
    rmSync(work, { recursive: true });
  }
}

/** Runs it. @returns what it printed. @throws Error with its output, when it finds something wrong or takes too long */
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
