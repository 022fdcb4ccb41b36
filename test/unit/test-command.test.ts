import { expect } from 'chai';
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);
const RUN = fileURLToPath(new URL('../run.ts', import.meta.url));

const npmTest = async (...args: string[]): Promise<{ code: number; said: string }> => {
  try {
    return { code: 0, said: (await run(process.execPath, ['--import', 'tsx', RUN, ...args])).stdout };
  } catch (error) {
    const { code, stderr } = error as { code: number; stderr: string };
    return { code, said: stderr };
  }
};

describe('npm test', function () {
  this.timeout(30_000);

  it('--help names every folder and runs nothing', async () => {
    const { code, said } = await npmTest('--help');
    expect(code).to.equal(0);
    for (const folder of ['unit', 'contract', 'scenario']) expect(said).to.include(`"${folder}"`);
    expect(said).not.to.include('passed, 0');
  });

  for (const wrong of ['scenarios', '--grepp']) {
    it(`refuses ${wrong}, which would have run everything or nothing`, async () => {
      const { code, said } = await npmTest(wrong);
      expect(code).to.equal(2);
      expect(said).to.include(wrong);
    });
  }
});
