//! Forms of a tensor that kernels read in its place, such as a matrix split into halves. An op makes a form from the
//! tensor's elements; one that is worth it is kept with the tensor's memory and goes with it. Elements in device memory
//! never change once they are written, so a form cannot go stale.

use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// What a form depends on beside the elements: whose it is, and numbers whose meaning its maker knows.
pub type FormKey = (&'static str, [u64; 6]);

/// What is known of a form that a call needs.
pub enum Form<T> {
    /// It was made by an earlier call.
    Kept(Arc<T>),
    /// Make it and keep it: the tensor was used before, together with another tensor than this time.
    Wanted,
    /// Make it for this call.
    Passing,
}

struct Entry {
    key: FormKey,
    /// The tensor that came along at the first use.
    partner: u64,
    form: Option<(Arc<dyn Any + Send + Sync>, Share)>,
}

/// The forms of one block of memory.
#[derive(Default)]
pub struct Forms {
    entries: Mutex<Vec<Entry>>,
    /// Whether they are wanted from the first use on and stay as long as the block.
    lasting: bool,
}

/// Uses remembered of a block.
const MOST_ENTRIES: usize = 8;

impl Forms {
    /// None yet. Lasting ones are wanted at the first use and never given up before the block.
    pub fn new(lasting: bool) -> Forms {
        Forms { lasting, ..Forms::default() }
    }

    /// Looks for a form and notes the use. `partner` tells apart the tensors that this one is used with: whoever repeats
    /// a call as it was gains nothing from a form, weights meet something new each time.
    pub fn find<T: Send + Sync + 'static>(&self, key: FormKey, partner: u64) -> Form<T> {
        let mut entries = lock(&self.entries);
        let entry = entries.iter().find(|entry| entry.key == key);
        let state = self.state(entry, partner);
        if entry.is_none() {
            if entries.len() >= MOST_ENTRIES {
                entries.retain(|entry| entry.form.is_some());
            }
            entries.push(Entry { key, partner, form: None });
        }
        state
    }

    /// What `find` would answer, without note of a use.
    pub fn peek<T: Send + Sync + 'static>(&self, key: FormKey, partner: u64) -> Form<T> {
        self.state(lock(&self.entries).iter().find(|entry| entry.key == key), partner)
    }

    fn state<T: Send + Sync + 'static>(&self, entry: Option<&Entry>, partner: u64) -> Form<T> {
        match entry {
            Some(Entry { form: Some((form, _)), .. }) => {
                form.clone().downcast().map_or(Form::Passing, Form::Kept)
            }
            _ if self.lasting => Form::Wanted,
            Some(entry) if entry.partner != partner => Form::Wanted,
            _ => Form::Passing,
        }
    }

    fn keep(&self, key: FormKey, form: Arc<dyn Any + Send + Sync>, share: Share) {
        if let Some(entry) = lock(&self.entries).iter_mut().find(|entry| entry.key == key) {
            entry.form.get_or_insert((form, share));
        }
    }

    fn take(&self) -> Vec<Entry> {
        std::mem::take(&mut *lock(&self.entries))
    }
}

/// All kept forms of a device.
#[derive(Default)]
pub struct KeptForms {
    blocks: Mutex<Vec<Weak<Forms>>>,
    bytes: Arc<AtomicU64>,
}

impl KeptForms {
    /// Bytes of all.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Acquire)
    }

    /// Keeps a form that was wanted, unless all together would then pass `most` bytes.
    pub fn keep<T: Send + Sync + 'static>(
        &self,
        forms: &Arc<Forms>,
        key: FormKey,
        form: Arc<T>,
        bytes: u64,
        most: u64,
    ) {
        let fits = |held: u64| held.checked_add(bytes).filter(|sum| *sum <= most);
        if self.bytes.fetch_update(Ordering::AcqRel, Ordering::Acquire, fits).is_err() {
            return;
        }
        forms.keep(key, form, Share { bytes, total: self.bytes.clone() });
        let mut blocks = lock(&self.blocks);
        blocks.retain(|block| block.strong_count() > 0 && !std::ptr::eq(block.as_ptr(), Arc::as_ptr(forms)));
        blocks.push(Arc::downgrade(forms));
    }

    /// Gives up all forms but the lasting ones; whether there were any.
    pub fn clear(&self) -> bool {
        let blocks = std::mem::take(&mut *lock(&self.blocks));
        let forms = blocks.iter().filter_map(Weak::upgrade).filter(|forms| !forms.lasting);
        let entries: Vec<Entry> = forms.flat_map(|forms| forms.take()).collect();
        entries.iter().any(|entry| entry.form.is_some())
    }
}

/// A form's part of a device's total.
struct Share {
    bytes: u64,
    total: Arc<AtomicU64>,
}

impl Drop for Share {
    fn drop(&mut self) {
        self.total.fetch_sub(self.bytes, Ordering::AcqRel);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: FormKey = ("test", [1; 6]);
    const OTHER: FormKey = ("test", [2; 6]);

    fn word(form: Form<u32>) -> &'static str {
        match form {
            Form::Kept(_) => "kept",
            Form::Wanted => "wanted",
            Form::Passing => "passing",
        }
    }

    #[test]
    fn a_form_is_wanted_once_a_second_partner_comes() {
        let (forms, kept) = (Arc::new(Forms::default()), KeptForms::default());
        let find = |key, partner| word(forms.find::<u32>(key, partner));
        assert_eq!(
            [word(forms.peek::<u32>(KEY, 7)), word(forms.peek::<u32>(KEY, 8))],
            ["passing", "passing"]
        );
        assert_eq!(
            [find(KEY, 7), find(KEY, 7), find(OTHER, 8), find(KEY, 8)],
            ["passing", "passing", "passing", "wanted"]
        );
        kept.keep(&forms, KEY, Arc::new(5u32), 100, 150);
        assert_eq!([find(KEY, 7), find(OTHER, 9)], ["kept", "wanted"]);
        assert!(matches!(forms.find::<u32>(KEY, 1), Form::Kept(value) if *value == 5));
        // No room for another, nor for a form of a block that is gone.
        kept.keep(&forms, OTHER, Arc::new(6u32), 51, 150);
        assert_eq!((find(OTHER, 9), kept.bytes()), ("wanted", 100));
        kept.keep(&forms, OTHER, Arc::new(6u32), 50, 150);
        assert_eq!((find(OTHER, 9), kept.bytes()), ("kept", 150));
        drop(forms);
        assert_eq!(kept.bytes(), 0);
        assert!(!kept.clear());
    }

    #[test]
    fn all_forms_can_be_given_up() {
        let (forms, kept) = (Arc::new(Forms::default()), KeptForms::default());
        let value = Arc::new(5u32);
        forms.find::<u32>(KEY, 1);
        kept.keep(&forms, KEY, value.clone(), 100, 1000);
        kept.keep(&forms, KEY, Arc::new(6u32), 100, 1000);
        assert_eq!((kept.bytes(), Arc::strong_count(&value)), (100, 2));
        assert!(kept.clear());
        assert_eq!((kept.bytes(), Arc::strong_count(&value)), (0, 1));
        assert_eq!(word(forms.find::<u32>(KEY, 2)), "passing");
    }

    #[test]
    fn few_uses_are_remembered() {
        let forms = Forms::default();
        for number in 0..100 {
            forms.find::<u32>(("test", [number; 6]), 1);
        }
        assert!(lock(&forms.entries).len() <= MOST_ENTRIES);
    }
}
