import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import sinon from 'sinon';
import { CliError } from '../../../../src/process/cli-error.js';
import { rulesCommand } from '../../../../src/operate/rules/commands.js';

describe('seckill rules check', () => {
  let folder: string;
  let lines: string[];
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'seckill-rules-'));
    lines = [];
    sinon.stub(console, 'log').callsFake((line: string) => void lines.push(line));
  });
  afterEach(() => {
    sinon.restore();
    rmSync(folder, { recursive: true, force: true });
  });

  /** Returns the output of the command, or the reason for its failure. */
  async function check(text: string | Buffer | null, ...flags: string[]): Promise<string> {
    const file = join(folder, 'rules.json');
    if (text !== null) writeFileSync(file, text);
    try {
      await rulesCommand().parseAsync(['check', file, ...flags], { from: 'user' });
    } catch (error) {
      if (error instanceof CliError) return `refused: ${error.message}`;
      throw error;
    }
    return lines.join('\n');
  }

  it('reports good rules as valid', async () => {
    expect(await check('{"version":3,"rules":{"lists":{"mode":"on"}}}')).to.match(/is valid\.$/);
    lines = [];
    expect(JSON.parse(await check('{"rules":{}}', '--json'))).to.deep.equal({ valid: true, errors: [] });
  });

  it('names the place of every mistake, as text and as JSON', async () => {
    const bad = '{"rules":{"lists":{"mode":"x","users":{"deny":["a b"]}}}}';
    const message = await check(bad);
    expect(message)
      .to.match(/^refused: .*is invalid/)
      .and.contain('\n  lists.mode ')
      .and.contain('\n  lists.users.deny.0 ');
    await check(bad, '--json');
    const [json = ''] = lines;
    const fields = JSON.parse(json).errors.map(({ field }: { field: string }) => field);
    expect(fields).to.deep.equal(['lists.mode', 'lists.users.deny.0']);
  });

  it('refuses a file that holds no rules', async () => {
    expect(await check(null)).to.match(/^refused: .*cannot be read/);
    expect(await check('{')).to.match(/^refused: .*The document is not JSON: it ends too early, at line 1, column 2/);
    expect(await check('{"lists":{}}')).to.match(/^refused: .*lists is not a known field/);
  });

  it('refuses a file that is not UTF-8, and accepts a byte order mark', async () => {
    for (const bytes of [Buffer.from('\ufeff{"rules":{}}', 'utf16le'), Buffer.from('{"rules":{"é":1}}', 'latin1')]) {
      expect(await check(bytes)).to.match(/^refused: .*rules\.json is not UTF-8: save it as UTF-8/);
    }
    expect(await check('\ufeff{"rules":{}}')).to.match(/is valid\.$/);
  });

  it('shows no terminal control sequence from the file', async () => {
    const message = await check(JSON.stringify({ rules: { '\u001b[2Jgone': 1 } }));
    expect(message).to.contain('gone').and.not.contain('\u001b');
  });
});
