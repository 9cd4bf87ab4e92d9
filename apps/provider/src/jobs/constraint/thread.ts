/** Entry of the thread that compiles client schemas. */
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
      // As data: a thrown error would lose its class between threads.
      return { failure: error.failure };
    }
  },
  fits: (demand: FormDemand, output: FormedOutput): boolean => fitsForm(demand, output),
});
