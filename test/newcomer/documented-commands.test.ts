import { expect } from 'chai';
import type { Command } from 'commander';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { REPO_DIR } from '../../deploy/local/stack/paths.js';
import { loadCommandLines, mistakesOf } from './command-lines.js';
import { documentedCommands, isCoveredBy, isPartOf, type DocumentedCommand } from './documented-commands.js';
import { NOT_RUN, RUN_BY, RUN_HERE } from './how-commands-run.js';

describe('documented commands', () => {
  const rows = [...RUN_HERE, ...Object.values(RUN_BY).flat(), ...Object.values(NOT_RUN).flat()];
  const commands = documentedCommands();
  const isListed = ({ text, inline }: DocumentedCommand): boolean =>
    rows.some((row) => isCoveredBy(row, text) || (inline && isPartOf(row, text)));

  it('each have a row in the table that says how they are tried', () => {
    const missing = commands.filter((command) => !isListed(command)).map(({ page, text }) => `${page}: ${text}`);
    expect(missing, 'not in test/newcomer/how-commands-run.ts').to.deep.equal([]);
  });

  it('are on a page if the table names them, and the named tests exist', () => {
    const unused = rows.filter((row) => !commands.some(({ text }) => isCoveredBy(row, text)));
    expect(unused, 'on no page').to.deep.equal([]);
    expect(Object.keys(RUN_BY).filter((file) => !existsSync(join(REPO_DIR, file)))).to.deep.equal([]);
  });

  it('use existing programs, options and files', async () => {
    const lines = await loadCommandLines();
    const mistakes = commands.flatMap(({ page, text, inline }) =>
      mistakesOf(lines, text, inline).map((mistake) => `${page}: ${text}: ${mistake}`),
    );
    expect(mistakes).to.deep.equal([]);
  });

  it('have each option of an example in their own --help', async () => {
    const { seckill } = await loadCommandLines();
    const withAll = (command: Command): Command[] => [command, ...command.commands.flatMap(withAll)];
    const wrong = withAll(seckill).flatMap((command) => {
      let help = '';
      command.configureOutput({ writeOut: (text) => void (help += text) }).outputHelp();
      return (help.match(/^ {2}seckill .+$/gm) ?? []).filter((example) => {
        const words = example.trim().split(/ +/);
        const own = words.reduce((at, word) => at.commands.find((one) => one.name() === word) ?? at, seckill);
        return words.some((word) => /^--[a-z]/.test(word) && own.options.every(({ long }) => long !== word));
      });
    });
    expect(wrong).to.deep.equal([]);
  });

  for (const [wrong, mistake] of [
    ['seckill sale creat', "unknown command 'creat'"],
    ['npm run -s seckill -- dlq list --stat parked', "unknown option '--stat'"],
    ['seckill sale warm', "missing required argument 'saleId'"],
    ['node dist/cli/main.js api --ports 1', "unknown option '--ports'"],
    ['npm run -s stack -- upp', "unknown command 'upp'"],
    ['npm start -- --prot 1', "unknown option '--prot'"],
    ['npm run simulate -- --sed 1', "unknown option '--sed'"],
    ['npm run mutants -- no-such-bug', 'there is no mutant no-such-bug'],
    ['npm run chaos -- run T99', 'no chaos scenario is called T99'],
    ['npm run chaos list', 'npm keeps list for itself'],
    ['npm test -- unitt', "'unitt' is invalid"],
    ['npm run build:all', 'no script build:all'],
    ['X=$(npx mocha test/guard/none.test.ts | head)', 'there is no test/guard/none.test.ts'],
  ] as const) {
    it(`are reported if wrong: ${wrong}`, async () => {
      const [found] = mistakesOf(await loadCommandLines(), wrong, false);
      expect(found).to.include(mistake);
    });
  }
});
