// What a fresh checkout runs first, so it needs nothing but Node.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const NODE_MIN = [20, 19];
const REPO_DIR = fileURLToPath(new URL('../../', import.meta.url));
const LOCK_FILE = `${REPO_DIR}package-lock.json`;
const MODULES_DIR = `${REPO_DIR}node_modules`;
/** Hash of the package-lock.json that node_modules was checked against. */
const HASH_FILE = `${MODULES_DIR}/.seckill-lock-hash`;

/**
 * Checks Node, installs the packages when they are missing or out of step with package-lock.json, and lets this
 * process import TypeScript from now on.
 */
export async function bootstrap() {
  checkNode();
  installPackages();
  const { register } = await import('tsx/esm/api');
  register();
}

function checkNode() {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  if (major > NODE_MIN[0] || (major === NODE_MIN[0] && minor >= NODE_MIN[1])) return;
  stop(`seckill needs Node ${NODE_MIN.join('.')} or newer, this is ${process.versions.node}; install a newer one.`);
}

function installPackages() {
  const lock = readFileSync(LOCK_FILE, 'utf8');
  const hash = createHash('sha256').update(lock).digest('hex');
  if (read(HASH_FILE) === hash) return;
  if (!matches(lock)) {
    console.error('Installing packages (npm ci), once per state of package-lock.json …');
    // npm's own lines would end up in `stack env` and --json, so they go where messages go
    const { status, error } = spawnSync('npm', ['ci', '--no-audit', '--no-fund'], {
      cwd: REPO_DIR,
      stdio: ['ignore', 2, 2],
    });
    if (error) stop(`npm does not run (${error.message}); install npm, it comes with Node.`);
    if (status !== 0) stop('npm ci failed, its messages are above; mend what they say and run the same command again.');
  }
  try {
    writeFileSync(HASH_FILE, hash);
  } catch {
    // a read-only checkout: the packages are compared again next time, which takes longer
  }
}

/** True when everything package-lock.json wants is installed: npm keeps its own copy of what it installed. */
function matches(lock) {
  const installed = read(`${MODULES_DIR}/.package-lock.json`);
  if (installed === null || !existsSync(`${MODULES_DIR}/tsx`)) return false;
  const have = JSON.parse(installed).packages;
  return Object.entries(JSON.parse(lock).packages).every(
    ([path, { version, optional, devOptional, link }]) =>
      path === '' || optional || devOptional || link || have[path]?.version === version,
  );
}

function read(file) {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return null;
  }
}

function stop(sentence) {
  console.error(sentence);
  process.exit(1);
}
