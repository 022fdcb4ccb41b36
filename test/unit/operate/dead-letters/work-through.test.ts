import { expect } from 'chai';
import sinon from 'sinon';
import { workThroughDeadLetters } from '../../../../src/operate/dead-letters/work-through.js';
import { OperationalError } from '../../../../src/core/errors.js';
import type { ReplayAnswer } from '../../../../src/operate/dead-letters/replay-dead-letter.js';
import { DeadLetterWorld } from './dead-letter-world.js';

const PACE = { perSecond: 1000, inFlightMax: 2 };

describe('seckill dlq: working through dead letters', () => {
  let lines: Record<string, unknown>[];
  let printed: string[];
  beforeEach(() => {
    lines = [];
    printed = [];
    sinon
      .stub(console, 'log')
      .callsFake((line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>));
    sinon.stub(console, 'error').callsFake((line: string) => void printed.push(line));
  });
  afterEach(() => sinon.restore());

  const run = (answers: Record<string, ReplayAnswer | OperationalError>, total = Object.keys(answers).length) =>
    workThroughDeadLetters(new DeadLetterWorld().admin, {
      deadLetterIds: Object.keys(answers),
      total,
      pace: PACE,
      json: true,
      end: 'replayed',
      work: async (deadLetterId) => {
        const answer = answers[deadLetterId] as ReplayAnswer | OperationalError;
        if (answer instanceof OperationalError) throw answer;
        return answer;
      },
    });

  it('prints one JSON line per dead letter and a total when all are done', async () => {
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
    expect(printed).to.deep.equal(['3 requested: 1 replayed, 1 already_recorded, 1 already_closed.']);
  });

  const NOT_DONE: Record<string, ReplayAnswer> = {
    'one whose orders did not come': { outcome: 'unfinished', note: 'n' },
    'one that is no batch': { outcome: 'unreadable', note: 'n' },
    'one without units': { outcome: 'not_held', note: 'n' },
    'one that was discarded': { outcome: 'already_closed', state: 'discarded' },
    'one that does not exist': { outcome: 'not_found' },
  };
  for (const [what, answer] of Object.entries(NOT_DONE)) {
    it(`reports partial success with ${what}`, async () => {
      expect(await run({ 1: { outcome: 'replayed', note: 'n' }, 2: answer })).to.equal(false);
    });
  }

  it('reports partial success with the message and advice if a server fails', async () => {
    const done = await run({ 1: new OperationalError('mysql', 'mysql is gone', { retryable: true }) });
    sinon.restore();
    expect(done).to.equal(false);
    expect(lines).to.deep.equal([{ deadLetterId: '1', outcome: 'fault', note: 'mysql is gone' }]);
    expect(printed.at(-1)).to.contain('run the same command again');
  });

  it('reports partial success if fewer dead letters match than were requested', async () => {
    expect(await run({ 1: { outcome: 'replayed', note: 'n' } }, 2)).to.equal(false);
  });

  it('leaves no signal handler behind', async () => {
    const before = process.listenerCount('SIGINT');
    await run({ 1: { outcome: 'replayed', note: 'n' } });
    expect(process.listenerCount('SIGINT')).to.equal(before);
  });
});
