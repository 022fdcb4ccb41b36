import { expect } from 'chai';
import { loadConfig } from '../../../../src/core/config/load.js';
import { openBroker } from '../../../../src/operate/broker/services.js';
import { StandInCluster } from '../../../helpers/stand-in-cluster.js';

describe('api: broker views of operators', () => {
  const said = 'no name server knows this broker any more';
  const configOf = (NAMESRV_ADDR: string) => loadConfig(['repair', 'brokerAccess'], { NAMESRV_ADDR });

  it('names a broker in later answers and traces after a name server has forgotten it', async () => {
    const empty = () => ({ code: 0, body: '{}' });
    const cluster = await StandInCluster.start({ 'broker-a': empty, 'broker-b': empty });
    const { brokerViews, traceBroker } = openBroker(configOf(cluster.namesrvAddr));
    try {
      expect((await brokerViews?.topics())?.down).to.deep.equal([]);
      cluster.forget('broker-b');
      const { down = [] } = (await brokerViews?.producers()) ?? {};
      expect(down.map(({ name, down: why }) => [name, why])).to.deep.equal([['broker-b', said]]);
      const ofBatch = await traceBroker?.halvesOf('4bf92f3577b34da6a3ce929d0e0e4736');
      expect(ofBatch?.silent).to.deep.include({ name: 'broker-b', why: said });
    } finally {
      cluster.close();
    }
  });

  it('asks nothing if there is no name server', () => {
    expect(openBroker(configOf(''))).to.deep.equal({ brokerViews: null, traceBroker: null });
  });
});
