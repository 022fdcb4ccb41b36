import { expect } from 'chai';
import { readdirSync, readFileSync } from 'node:fs';
import { upCommand } from '../../../deploy/local/up.js';

describe('npm start', () => {
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
});
