import { expect } from 'chai';
import { ConfigError } from '../../../src/core/config/load.js';
import type { Log } from '../../../src/core/ports/log.js';
import type { PaymentProvider } from '../../../src/core/ports/payment-provider.js';
import { openHttpProvider } from '../../../src/payment/http-provider.js';
import { PaymentServiceStandIn, SERVICE_KEY } from '../../helpers/payment-service-stand-in.js';
import { silentLog } from '../../helpers/silent-log.js';

const PRICE = { amountCents: 1998, currency: 'EUR' };

describe('a payment service over HTTP', () => {
  let service: PaymentServiceStandIn;
  let apiUrl: string;
  let provider: PaymentProvider;
  let logged: string[];
  const log: Log = {
    ...silentLog,
    warn: (fields: object, message: string) => void logged.push(`${message} ${JSON.stringify(fields)}`),
  };

  beforeEach(async () => {
    logged = [];
    service = new PaymentServiceStandIn();
    apiUrl = `${await service.start()}/pay`;
    ({ provider } = await openHttpProvider({ apiKey: SERVICE_KEY, apiUrl }, log));
    service.asked.length = 0;
  });
  afterEach(() => service.stop());

  it('receives order, key, price and payment method, and authenticates us by our key', async () => {
    await provider.charge('99', PRICE, 'k1', 'token-1');
    const [asked] = service.asked;
    expect(JSON.parse(asked?.text ?? '')).to.deep.equal({
      orderId: '99',
      key: 'k1',
      ...PRICE,
      paymentMethod: 'token-1',
    });
    expect(asked?.headers).to.include({ 'idempotency-key': '99-k1', authorization: `Bearer ${SERVICE_KEY}` });
    await provider.lookUp('99', PRICE, 'k1');
    await provider.lookUp('99', PRICE, 'k1', true);
    const looked = service.asked.slice(1).map(({ method, path, query }) => `${method} ${path} ${query.toString()}`);
    expect(looked).to.deep.equal(['GET /pay/charges/99/k1 ', 'GET /pay/charges/99/k1 giveUp=true']);
  });

  it('leaves the outcome unknown after any error and any unknown answer', async () => {
    for (const fault of ['error', 'nonsense'] as const) {
      service.breakNext(fault);
      expect(await provider.charge('99', PRICE, 'k1'), fault).to.deep.equal({ outcome: 'unknown' });
      service.breakNext(fault);
      expect(await provider.lookUp('99', PRICE, 'k1'), fault).to.deep.equal({ outcome: 'unknown' });
      service.breakNext(fault);
      expect(await provider.refund('p-1', 1998, 'p-1'), fault).to.deep.equal({ outcome: 'unknown' });
    }
    expect(logged).to.have.length(6);
    expect(logged[0]).to.contain('the answer has status 502').and.not.contain(SERVICE_KEY);
    expect(logged[3]).to.contain('the answer is not valid');
  });

  it('prevents the start if it refuses our key, but not during an outage', async () => {
    const error: unknown = await openHttpProvider({ apiKey: 'another-key-of-somebody', apiUrl }, log).catch(
      (reason: unknown) => reason,
    );
    expect(error).to.be.instanceOf(ConfigError);
    expect((error as ConfigError).problems).to.deep.equal([
      'PAYMENT_API_KEY is refused by PAYMENT_API_URL (401): set the key of that service',
    ]);
    service.breakNext('error');
    await openHttpProvider({ apiKey: SERVICE_KEY, apiUrl }, log);
    expect(logged.join()).to.contain('nobody can pay until it answers');
  });
});
