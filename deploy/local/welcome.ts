export interface WelcomeFacts {
  /** Address of the API for buyers. */
  readonly url: string;
  /** Address for operators and monitoring. */
  readonly operatorsUrl: string;
  readonly saleId: string;
  readonly title: string;
  readonly token: string;
  /** Idempotency-Key of the printed purchase. */
  readonly key: string;
  /** The sale page, signed in by the part after its `#`, and the operators' console. */
  readonly buyerUrl: string;
  readonly consoleUrl: string;
  /** Console tokens: the viewer may look, the admin may change everything. */
  readonly viewerToken: string;
  readonly adminToken: string;
  /** Addresses of worker and keeper. */
  readonly metricsUrls: readonly string[];
  /** Whether payments are simulated. Otherwise there is no payment provider. */
  readonly simulatedPayments: boolean;
  /** Whether simulated buyers come, and whether faults are injected. */
  readonly traffic: boolean;
  readonly faults: boolean;
}

const GIVE_UP = 'Give it up (PAYMENT_PROVIDER is none, so only a webhook can report payments):';

/** Tells a newcomer what to do next. Every line can be pasted into another terminal. */
export function welcome({
  url,
  operatorsUrl,
  saleId,
  title,
  token,
  key,
  buyerUrl,
  consoleUrl,
  viewerToken,
  adminToken,
  metricsUrls,
  simulatedPayments,
  traffic,
  faults,
}: WelcomeFacts): string {
  return `
Seckill is up. Sale ${saleId} (“${title}”) is open.

Buy one unit:

  curl -i -X POST ${url}/v1/sales/${saleId}/purchases \\
    -H 'Authorization: Bearer ${token}' \\
    -H 'Content-Type: application/json' \\
    -H 'Idempotency-Key: ${key}' -d '{"quantity":1}'

Read its status (the answer has the order id):

  curl -s '${url}/v1/sales/${saleId}/purchases/${key}?wait=10' \\
    -H 'Authorization: Bearer ${token}'

${simulatedPayments ? 'Pay it, or give it up with /cancel (payments are simulated: no money moves):' : GIVE_UP}

  curl -s -X POST ${url}/v1/orders/<orderId>/${simulatedPayments ? 'pay' : 'cancel'} \\
    -H 'Authorization: Bearer ${token}'

Then GET ${url}/v1/orders/<orderId> with the same token, ${url}/v1/sales/${saleId} for the sale.

Page for buyers: ${buyerUrl}
Console:         ${consoleUrl}
Metrics:         ${[`${operatorsUrl}/metrics`, ...metricsUrls].join(' ')}

Sign in to the console with a token that is valid for some hours. To look only:

  ${viewerToken}

To change everything:

  ${adminToken}

For operators: ${operatorsUrl}/readyz for the health of every part, /openapi/buyers.json and
/openapi/operators.json there for the rest of the API.
Another buyer: npm run -s seckill -- token --user alice
${traffic ? trafficNote(faults) : ''}
Ctrl-C stops everything in order and keeps the data.`;
}

const trafficNote = (faults: boolean): string => `
Simulated buyers come now, to their own sales: a hot sale each minute, a steady sale in waves, a scarce sale, and a sale with a
waiting room. Unpaid orders expire after 45 s (ORDER_PAYMENT_WINDOW_MS). Every 30 s a line says what buyers saw.${faults ? FAULTS : ''} At the end Redis and
MySQL are compared.
`;

const FAULTS = ` The demo breaks something every
minute. A line that begins with "Fault:" says what, and where to look.`;
