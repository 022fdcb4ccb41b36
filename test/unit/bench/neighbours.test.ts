import { expect } from 'chai';
import { OUTCOME_CODE } from '../../../bench/load/open-loop.js';
import { percentile, phasesOf, sharesOf, soldAt, type Phase } from '../../../bench/neighbours/phases.js';

const base64 = (values: Float32Array | Uint8Array): string =>
  Buffer.from(values.buffer as ArrayBuffer).toString('base64');

describe('neighbours: phases of a load', () => {
  const START_MS = 1_000_000;
  const RATE = 10;
  /** Requests of two sales in turn, one each 100 ms. */
  const load = (answers: readonly (readonly [latencyMs: number, code: number])[]) => ({
    startedAtMs: START_MS,
    sent: answers.length,
    latencies: base64(Float32Array.from(answers, ([latencyMs]) => latencyMs)),
    outcomes: base64(Uint8Array.from(answers, ([, code]) => code)),
    sendDelays: base64(new Float32Array(answers.length)),
    cpuSeconds: 0,
  });
  const { ok, unknown } = OUTCOME_CODE;
  const stretches = [
    { name: 'before', fromMs: START_MS, toMs: START_MS + 1000 },
    { name: 'during', fromMs: START_MS + 1000, toMs: START_MS + 2000 },
  ] as const;

  it('count only the neighbours, by when a request was due; one without an answer has no end', () => {
    const before = Array.from({ length: 10 }, (_, place) => [place % 2 === 0 ? 20 : 9000, ok] as const);
    const during = [...before.slice(0, 8), [NaN, unknown], [1, ok]] as const;
    const sold = [
      { atMs: START_MS, sold: 100 },
      { atMs: START_MS + 2000, sold: 110 },
    ];
    const phases = phasesOf(
      load([...before, ...during]),
      { rate: RATE, sales: 2 },
      (sale) => sale === 0,
      stretches,
      sold,
    );
    expect(phases[0]).to.include({ name: 'before', perSecond: 5, landedPerSecond: 5, refused: 0, p50: 20, p99: 20 });
    expect(phases[1]).to.include({ name: 'during', perSecond: 4, landedPerSecond: 5, refused: 1, p99: Infinity });
  });

  it('shares are those of during to before', () => {
    const phase = (name: 'before' | 'during', value: number): Phase => ({
      name,
      seconds: 1,
      perSecond: value,
      landedPerSecond: value,
      refused: 0,
      p50: value,
      p99: value,
      max: value,
      clientP99: 0,
    });
    const one = { title: '', about: '', problems: [], phases: [phase('before', 10), phase('during', 9)] };
    expect(sharesOf(one)).to.deep.equal({ rate: 0.9, landed: 0.9, p99: 0.9 });
  });

  it('percentiles and counts between two samples', () => {
    expect([percentile([], 0.99), percentile([3, 1, 2], 0.5), percentile([3, 1, 2], 1)]).to.deep.equal([0, 2, 3]);
    const samples = [
      { atMs: 0, sold: 10 },
      { atMs: 100, sold: 20 },
    ];
    expect([-5, 0, 50, 100, 500].map((atMs) => soldAt(samples, atMs))).to.deep.equal([10, 10, 15, 20, 20]);
  });
});
