// A fresh checkout runs this file first, so it needs only Node.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { bundleIfOlder } from '../../build.mjs';

const NODE_MIN = [20, 19];
const REPO_DIR = fileURLToPath(new URL('../../', import.meta.url));
const LOCK_FILE = `${REPO_DIR}package-lock.json`;
const MODULES_DIR = `${REPO_DIR}node_modules`;
/** Holds the hash of the package-lock.json that node_modules was checked against. */
const HASH_FILE = `${MODULES_DIR}/.seckill-lock-hash`;
/** Holds the pid of the installing process, because two parallel `npm ci` delete each other's files. */
const INSTALL_LOCK_FILE = `${REPO_DIR}.stack-npm-ci.lock`;

/**
 * Checks Node, installs packages that are missing or differ from package-lock.json, and lets this process import
 * TypeScript.
 */
export async function bootstrap() {
  checkNode();
  installPackages();
  const { register } = await import('tsx/esm/api');
  register();
}

/** Prepares a bundled run: rebuilds the bundle if its sources are newer. */
export async function bootstrapBuilt() {
  checkNode();
  installPackages();
  await bundleIfOlder().catch(({ message }) => stop(message));
  process.setSourceMapsEnabled(true); // Node reads the source map of a file when it loads the file
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
    const installLock = takeInstallLock(INSTALL_LOCK_FILE);
    if (installLock.refusal) stop(installLock.refusal);
    const failure = matches(lock) ? null : runNpmCi(); // the previous holder may have installed them
    installLock.release();
    if (failure !== null) stop(failure);
  }
  try {
    writeFileSync(HASH_FILE, hash);
  } catch {
    // a read-only checkout: the slower comparison runs again next time
  }
}

/** @returns null, or a sentence with the reason of the failure */
function runNpmCi() {
  console.error('Installing packages (npm ci), once per state of package-lock.json …');
  // npm's output would end up in `stack env` and --json, so it goes to stderr
  const { status, error } = spawnSync('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: REPO_DIR,
    stdio: ['ignore', 2, 2],
  });
  if (error) return `npm does not run (${error.message}); install npm, it comes with Node.`;
  if (status === 0) return null;
  return 'npm ci failed, its messages are above; correct what they name and run the same command again.';
}

/**
 * Takes the lock, even that of a process that has ended. @returns a function that releases the lock, or a sentence that
 * says why it was refused
 */
function takeInstallLock(file) {
  try {
    if (existsSync(file) && !isAlive(read(file))) rmSync(file, { force: true });
    writeFileSync(file, String(process.pid), { flag: 'wx' });
    return { release: () => rmSync(file, { force: true }) };
  } catch (error) {
    if (error.code !== 'EEXIST') {
      return {
        refusal: `The packages cannot be installed: ${error.message}. Make the checkout writable for this user.`,
      };
    }
    const holder = `Process ${read(file)} installs the packages of this checkout`;
    return { refusal: `${holder}; wait until it is done, then run the same command again.` };
  }
}

function isAlive(pid) {
  try {
    process.kill(Number(pid), 0); // signal 0 only asks; an empty file is new, so its process counts as alive
    return true;
  } catch (error) {
    return error.code === 'EPERM'; // the process belongs to another user
  }
}

/** Whether all packages of package-lock.json are installed, according to the copy that npm keeps. */
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
