import { expect } from 'chai';
import { readdirSync, readFileSync } from 'node:fs';
import { StackError } from '../../../deploy/local/stack/stack-error.js';
import { runSystem, upCommand } from '../../../deploy/local/up.js';

describe('npm start', () => {
  const failing = async (ranBefore: boolean, flags: object = {}): Promise<number> => {
    let downs = 0;
    const stack = { env: () => expect.fail('nothing is started'), down: async () => (downs++, []) };
    const parts = {
      startStack: async () => {
        await new Promise(setImmediate); // the build fails first
        return { stack, ranBefore };
      },
      buildPages: async () => {
        throw new StackError('The pages cannot be built.');
      },
    };
    const running = runSystem({ json: true, ...flags }, new AbortController().signal, parts);
    const error = await running.catch((cause: unknown) => cause);
    expect(error).to.be.instanceOf(StackError);
    return downs;
  };

  it('has every flag that its hints name', () => {
    const known = upCommand().options.map(({ long }) => long);
    const folder = new URL('../../../deploy/local/', import.meta.url);
    const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'));
    const hints = files.flatMap(
      (file) => readFileSync(new URL(file, folder), 'utf8').match(/npm start -- --.*/g) ?? [],
    );
    const named = hints.flatMap((hint) => hint.match(/--[a-z-]+/g) ?? []);
    expect(named).to.include.members(['--dir', '--free-ports', '--port']);
    for (const flag of named) expect(known, flag).to.include(flag);
  });

  it('stops its servers when the pages cannot be built', async () => {
    expect(await failing(false)).to.equal(1);
    expect(await failing(true), 'they ran before').to.equal(0);
    expect(await failing(false, { keepStack: true })).to.equal(0);
  });
});
