import { readBuckets, repairSale, reshardSale } from './bucket-routes.js';
import { cancelSale, deleteSale, editSale } from './edit-routes.js';
import { createSale, listSales, readSale, readSalePlan, saleMoves } from './routes.js';

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
