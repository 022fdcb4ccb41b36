import { readBuckets, repairSale, reshardSale } from './bucket-routes.js';
import { cancelSale, deleteSale, editSale } from './edit-routes.js';
import { createSale, listSales, readSale, readSalePlan, saleMoves } from './routes.js';

// The entry point for programs. The command line loads `commands.ts`, only when the command is named.

export const saleRoutes = [
  createSale,
  listSales,
  readSalePlan,
  readSale,
  editSale,
  deleteSale,
  cancelSale,
  ...saleMoves,
  reshardSale,
];
export const bucketRoutes = [readBuckets, repairSale];
export { openSaleServices, priceTermsOf, type SaleServices } from './services.js';
