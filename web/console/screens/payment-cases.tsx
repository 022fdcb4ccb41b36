import type { PaymentCase } from '../api/types.js';
import { Ago, Cut, Id, Time } from '../parts/basics.js';
import { Closable, OrderLink } from '../parts/closable.js';
import { Empty } from '../parts/states.js';
import { useWords } from '../shell/hooks.js';

/** Shows open cases: money that a person must settle. */
export function PaymentCases() {
  const { t, f } = useWords();
  const words = t.refunds.cases;
  const money = ({ amountCents, currency }: PaymentCase): string =>
    amountCents === null ? '–' : f.money(amountCents, currency);
  return (
    <Closable<PaymentCase>
      path="/admin/v1/payment-cases"
      rows="cases"
      idOf={({ caseId }) => caseId}
      subject="payment_case"
      words={words}
      empty={<Empty title={words.empty} text={words.emptyText} />}
      columns={[
        { name: words.kind, width: '180px', phoneWidth: '120px', cell: ({ kind }) => t.refunds.cases.kinds[kind] },
        { name: t.refunds.amount, isNumber: true, width: '100px', phoneWidth: '84px', cell: money },
        { name: t.common.order, hides: 'phone', width: '160px', cell: OrderLink },
        { name: words.detail, hides: 'phone', cell: ({ detail }) => <Cut text={detail} lang="en" /> },
        { name: t.refunds.created, hides: 'phone', width: '100px', cell: ({ createdAt }) => <Ago at={createdAt} /> },
      ]}
      facts={(one) => [
        [words.kind, t.refunds.cases.kinds[one.kind]],
        [t.refunds.amount, <b>{money(one)}</b>],
        [t.refunds.payment, one.paymentId === null ? '–' : <Id text={one.paymentId} />],
        [words.subject, <Id text={one.subject} />],
        [words.detail, <span lang="en">{one.detail}</span>],
        [t.refunds.created, <Time at={one.createdAt} />],
      ]}
    />
  );
}
