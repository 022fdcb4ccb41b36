import { describeFinding, isCompensated, subjectOf, type SaleFinding } from '../../core/sale-finding.js';
import type { Sale } from '../../core/sale.js';
import type { NewCompensationJob } from '../../core/ports/compensation-repository.js';

/**
 * Makes the jobs that repair findings. A finding that only a person can judge gets no job. Drift gets no job while the
 * sale is open, because then no script may set its stock.
 */
export function jobsOf(sale: Sale, findings: readonly SaleFinding[]): NewCompensationJob[] {
  return findings.flatMap((finding) => {
    const { kind } = finding;
    if (!isCompensated(kind) || (kind === 'drift' && sale.state === 'open')) return [];
    const request = 'requestId' in finding ? finding : { batchId: null, userId: null, requestId: null };
    const { batchId, userId, requestId } = request;
    const { saleId } = finding;
    return [{ kind, saleId, batchId, userId, requestId, ...words(finding) }];
  });
}

const words = (finding: SaleFinding): Pick<NewCompensationJob, 'subject' | 'detail'> => ({
  subject: subjectOf(finding),
  detail: describeFinding(finding),
});
