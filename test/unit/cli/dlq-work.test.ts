import { expect } from 'chai';
import sinon from 'sinon';
import { workThroughDeadLetters } from '../../../src/cli/dlq-work.js';
import { OperationalError } from '../../../src/core/errors.js';
import type { ReplayAnswer } from '../../../src/recovery/dead-letters/replay-dead-letter.js';
import { DeadLetterWorld } from '../recovery/dead-letters/dead-letter-world.js';

const PACE = { perSecond: 1000, inFlightMax: 2 };

describe('dlq: working through letters', () => {
  let lines: Record<string, unknown>[];
  let said: string[];
  beforeEach(() => {
    lines = [];
    said = [];
    sinon
      .stub(console, 'log')
      .callsFake((line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>));
    sinon.stub(console, 'error').callsFake((line: string) => void said.push(line));
  });
  afterEach(() => sinon.restore());

  const run = (answers: Record<string, ReplayAnswer | OperationalError>, total = Object.keys(answers).length) =>
    workThroughDeadLetters(new DeadLetterWorld().admin, {
      ...{ deadLetterIds: Object.keys(answers), total, pace: PACE, json: true, end: 'replayed' },
      work: async (deadLetterId) => {
        const answer = answers[deadLetterId] as ReplayAnswer | OperationalError;
        if (answer instanceof OperationalError) throw answer;
        return answer;
      },
    });

  it('all done: one JSON line each, and a sum', async () => {
    const done = await run({
      1: { outcome: 'replayed', note: 'recorded' },
      2: { outcome: 'already_recorded', note: 'before' },
      3: { outcome: 'already_closed', state: 'replayed' },
    });
    sinon.restore();
    expect(done).to.equal(true);
    expect(lines).to.deep.equal([
      { deadLetterId: '1', outcome: 'replayed', note: 'recorded' },
      { deadLetterId: '2', outcome: 'already_recorded', note: 'before' },
      { deadLetterId: '3', outcome: 'already_closed', note: 'it is replayed' },
    ]);
    expect(said).to.deep.equal(['3 asked for: 1 replayed, 1 already_recorded, 1 already_closed.']);
  });

  const PARTLY: Record<string, ReplayAnswer> = {
    'a letter whose orders did not come': { outcome: 'unfinished', note: 'n' },
    'a letter that is no batch': { outcome: 'unreadable', note: 'n' },
    'a letter without units': { outcome: 'not_held', note: 'n' },
    'a letter that was discarded': { outcome: 'already_closed', state: 'discarded' },
    'a letter that is none': { outcome: 'not_found' },
  };
  for (const [what, answer] of Object.entries(PARTLY)) {
    it(`done in part: ${what}`, async () => {
      expect(await run({ 1: { outcome: 'replayed', note: 'n' }, 2: answer })).to.equal(false);
    });
  }

  it('done in part: a fault is told with its message, and what to do', async () => {
    const done = await run({ 1: new OperationalError('mysql', 'mysql is gone', { retryable: true }) });
    sinon.restore();
    expect(done).to.equal(false);
    expect(lines).to.deep.equal([{ deadLetterId: '1', outcome: 'fault', note: 'mysql is gone' }]);
    expect(said.at(-1)).to.contain('run the same command again');
  });

  it('done in part: fewer than were asked for', async () => {
    expect(await run({ 1: { outcome: 'replayed', note: 'n' } }, 2)).to.equal(false);
  });

  it('leaves no signal handler behind', async () => {
    const before = process.listenerCount('SIGINT');
    await run({ 1: { outcome: 'replayed', note: 'n' } });
    expect(process.listenerCount('SIGINT')).to.equal(before);
  });
});
