// `npm run check`: format, lint with types, weight and the tests without servers, two at a time. Shows only what
// failed. TypeScript 7 checks the types in a third of the time. `npm run typecheck` uses the compiler of the build.
import { spawn } from 'node:child_process';

/** Its table is shown even if nothing is wrong. */
const WEIGHT = 'weight';
/** The longest ones start first. */
const waiting = ['test:unit', 'lint', 'format:check', 'lint:unused', WEIGHT];
const LANES = 2;
let failed = 0;

async function work() {
  for (let name = waiting.shift(); name !== undefined; name = waiting.shift()) {
    const startedMs = Date.now();
    const { code, output } = await run(name);
    const seconds = ((Date.now() - startedMs) / 1000).toFixed(0);
    if (code === 0) {
      if (name === WEIGHT) console.log(`\n${output}`);
      console.log(`${name}: ok, ${seconds} s`);
    } else {
      failed++;
      console.log(`${output}\n${name}: FAILED, ${seconds} s`);
    }
  }
}

/** @returns its exit code and all its output */
function run(name) {
  const child = spawn('npm', ['run', '--silent', name], { stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (output += text));
  return new Promise((resolve, reject) => {
    child.once('error', reject).once('close', (code) => resolve({ code, output }));
  });
}

await Promise.all(Array.from({ length: LANES }, work));
process.exitCode = failed > 0 ? 1 : 0;
