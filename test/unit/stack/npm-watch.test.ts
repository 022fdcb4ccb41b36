import { expect } from 'chai';
import { npmEndedCheck } from '../../../deploy/local/npm-watch.js';

const SCRIPT = 'node deploy/local/main.mjs up';
const [LOGIN, NPM, SHELL, SELF] = [100, 200, 300, 400];

describe('the watch on npm', () => {
  let parents: Map<number, number>;
  const check = (commands: Record<number, string>): (() => boolean) =>
    npmEndedCheck(SCRIPT, SELF, {
      parentOf: (pid) => parents.get(pid) ?? null,
      commandOf: (pid) => commands[pid] ?? '',
    });

  describe('with a shell between npm and the launcher', () => {
    beforeEach(
      () =>
        (parents = new Map([
          [SELF, SHELL],
          [SHELL, NPM],
          [NPM, LOGIN],
        ])),
    );
    const start = (): (() => boolean) => check({ [SHELL]: `sh\0-c\0${SCRIPT}\0`, [NPM]: 'npm start' });

    it('notices when npm alone was killed', () => {
      const hasEnded = start();
      expect(hasEnded()).to.equal(false);
      parents.set(SHELL, 1);
      expect(hasEnded()).to.equal(true);
    });

    it('ignores the end of the terminal', () => {
      const hasEnded = start();
      parents.set(NPM, 1);
      expect(hasEnded()).to.equal(false);
    });
  });

  it('notices the end of npm, not of the terminal, when there is no shell', () => {
    parents = new Map([
      [SELF, NPM],
      [NPM, LOGIN],
    ]);
    const hasEnded = check({ [NPM]: 'npm start' });
    parents.set(NPM, 1);
    expect(hasEnded(), 'the terminal').to.equal(false);
    parents.set(SELF, 1);
    expect(hasEnded(), 'npm').to.equal(true);
  });
});
