import { expect } from 'chai';
import { Admission } from '../../../src/admission/admission.js';
import type { Layer, Refused, Verdict, Mode, AdmissionRequest } from '../../../src/admission/layer.js';
import { noAdmissionMetrics } from '../../helpers/no-metrics.js';
import { partial } from '../../helpers/partial.js';

const REQUEST: AdmissionRequest = { endpoint: 'purchase', address: '192.0.2.1', agent: 'x' };
const NO: Refused = { word: 'denied', retryAfterMs: null };

describe('admission', () => {
  let asked: string[];
  let counted: string[];
  beforeEach(() => void ([asked, counted] = [[], []]));

  const layer = (mode: Mode, verdict: Verdict, label = mode): Layer => {
    const answer = (stage: string): Verdict => {
      asked.push(`${label} ${stage}`);
      return verdict;
    };
    return {
      name: 'lists',
      modeOf: () => mode,
      anonymous: () => answer('anonymous'),
      buyer: (_request, userId) => answer(userId),
    };
  };
  const entryOf = (...layers: Layer[]): Admission =>
    new Admission(partial({ isAnyOn: true }), layers, {
      ...noAdmissionMetrics,
      refused: (...words) => void counted.push(words.join(' ')),
    });

  it('calls no layer while all layers are off', () => {
    const entry = entryOf(layer('off', NO), layer('off', NO));
    expect([entry.anonymous(REQUEST), entry.buyer(REQUEST, 'ann')]).to.deep.equal([null, null]);
    expect([asked, counted]).to.deep.equal([[], []]);
  });

  it('enables a layer once the rules enable it', () => {
    const current = { isAnyOn: false };
    const entry = new Admission(partial(current), [], noAdmissionMetrics);
    expect(entry.isOn).to.equal(false);
    current.isAnyOn = true;
    expect(entry.isOn).to.equal(true);
  });

  it('counts the first refusal under its layer and calls no later layer', () => {
    const entry = entryOf(
      layer('on', null, 'first' as Mode),
      layer('on', NO, 'second' as Mode),
      layer('on', NO, 'third' as Mode),
    );
    expect(entry.anonymous(REQUEST)).to.equal(NO);
    expect(asked).to.deep.equal(['first anonymous', 'second anonymous']);
    expect(counted).to.deep.equal(['lists denied on']);
  });

  it('counts the refusal of a dry run and passes the request to the next layer', () => {
    const entry = entryOf(layer('dry_run', NO), layer('on', NO));
    expect(entry.buyer(REQUEST, 'ann')).to.equal(NO);
    expect(asked).to.deep.equal(['dry_run ann', 'on ann']);
    expect(counted).to.deep.equal(['lists denied dry_run', 'lists denied on']);
    expect(entryOf(layer('dry_run', NO)).anonymous(REQUEST)).to.equal(null);
  });

  it('waits for a pending layer before it calls later layers', async () => {
    const slow = Promise.resolve(null);
    expect(entryOf(layer('on', null)).anonymous(REQUEST), 'nothing waits').to.equal(null);
    const verdict = entryOf(layer('on', slow), layer('dry_run', Promise.resolve(NO)), layer('on', NO)).anonymous(
      REQUEST,
    );
    expect(verdict).to.be.instanceOf(Promise);
    expect(asked).to.deep.equal(['on anonymous', 'on anonymous']);
    expect(await verdict).to.equal(NO);
    expect(counted).to.deep.equal(['lists denied dry_run', 'lists denied on']);
    expect(await entryOf(layer('on', slow)).buyer(REQUEST, 'ann')).to.equal(null);
  });

  it('stops at a refusal that arrives late', async () => {
    expect(await entryOf(layer('on', Promise.resolve(NO)), layer('on', null)).anonymous(REQUEST)).to.equal(NO);
    expect(asked).to.have.length(1);
  });

  it('applies only operator layers to an operator, and only counts in a dry run', () => {
    const knowing = (mode: Mode): Layer => ({
      ...layer(mode, null),
      operator: (userId) => (userId === 'eve' ? NO : null),
    });
    expect(entryOf(layer('on', NO), knowing('off')).operator('eve')).to.equal(null);
    expect(entryOf(layer('on', NO), knowing('dry_run')).operator('eve')).to.equal(null);
    expect(entryOf(layer('on', NO), knowing('on')).operator('ann')).to.equal(null);
    expect(entryOf(layer('on', NO), knowing('on')).operator('eve')).to.equal(NO);
    expect(counted).to.deep.equal(['lists denied dry_run', 'lists denied on']);
    expect(asked).to.deep.equal([]);
  });
});
