import { expect } from 'chai';
import { welcome } from '../../../deploy/local/welcome.js';

const FACTS = { url: 'http://127.0.0.1:8080', saleId: '7', title: 'A pen', token: 't', key: 'k1', metricsUrls: [] };

describe('welcome', () => {
  it('says that payments are simulated where they are, and only there', () => {
    const simulated = welcome({ ...FACTS, simulatedPayments: true });
    expect(simulated).to.contain('payments are simulated').and.contain('/v1/orders/<orderId>/pay');
    const none = welcome({ ...FACTS, simulatedPayments: false });
    expect(none).not.to.contain('simulated').and.not.contain('<orderId>/pay');
    expect(none).to.contain('/v1/orders/<orderId>/cancel');
  });
});
