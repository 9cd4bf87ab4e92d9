/** Entry of the thread that makes forms out of clients' schemas, so that a schema that takes seconds takes them from nobody's stream. */
import { worker } from 'workerpool';
import { JobError } from '../job-error.js';
import type { FormAnswer } from './constraint-compiler.js';
import { type FormDemand, type FormedOutput, fitsForm, makeForm } from './output-constraint.js';

worker({
  make: (demand: FormDemand): FormAnswer => {
    try {
      return { form: makeForm(demand) };
    } catch (error) {
      if (!(error instanceof JobError)) throw error;
      // As data: what is thrown here would lose its class on the way.
      return { failure: error.failure };
    }
  },
  fits: (demand: FormDemand, output: FormedOutput): boolean => fitsForm(demand, output),
});
