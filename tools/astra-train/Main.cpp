//===- astra-train: train a bundle on data --------------------------------------===//
// Takes:    a bundle made by astra-compile --train, arrays, a command line.
// Gives:    weights, a log, checkpoints from which a run goes on.
// Keeps:    to the C ABI: what this tool can do, any C program can (examples/digits_train).
// Does not: compile, or know the bundle's format.
#include "Arrays.h"
#include "Places.h"
#include "Trainer.h"
#include <csignal>
#include <filesystem>

using namespace astra::tool;

static Program describe(TrainSettings &s) {
  Program p;
  p.name = "astra-train";
  p.synopsis = "FILE.astra --data INPUT=FILE,... --epochs N --batch N --out FILE.safetensors [options]";
  p.summary = "train a bundle on data";
  p.description =
      "Calls train_step of a bundle that astra-compile --train has made on batches of rows, in an order that the seed "
      "and the number of the epoch decide, and writes the weights. An array's first axis counts its rows. It lies in a "
      ".npy file, as numbers between commas in a .csv file, or under a name in a .npz or .safetensors file "
      "(FILE.npz:NAME; the input's name if none is given). Integers may be of another width than the input's if they "
      "fit; f64 is rounded to f32 and axes of extent 1 are added or left out, with a note. The bytes of the weights "
      "and of the log are the "
      "same on every CPU, with any number of threads, and if the run is stopped and resumed. The last batch of an "
      "epoch "
      "has the rows that are left. A path of weights or of a checkpoint that ends in .safetensors.index.json is one of "
      "several files and their index; of a bundle for a mesh all ranks write them at once.";
  p.options = {
      {"data", "INPUT=FILE,...",
       "an array for each input of train_step, target among them; or one .npz or .safetensors file that has them all",
       commas(s.data)},
      {"epochs", "N", "how often every row is used", number(s.epochs, 1, (int64_t(1) << 31) - 1)},
      {"batch", "N", "rows of a step", number(s.batch, 1, UINT32_MAX)},
      {"seed", "N", "decides the order of the rows, what dropout drops and what --init draws; 0 if not given",
       number(s.seed, 0, UINT32_MAX)},
      {"out", "FILE.safetensors", "where the weights go", text(s.out)},
      {"weights", "FILE.safetensors", "weights to begin with, instead of the model's", text(s.weights)},
      {"init", "", "begins with weights that the bundle's entry init draws from the seed", flag(s.init)},
      {"eval", "INPUT=FILE,...", "data as for --data, on which eval is called after every epoch", commas(s.eval)},
      {"log", "FILE.csv", "loss and learning rate of every step, what eval says after every epoch", text(s.log)},
      {"checkpoint-every", "N",
       "writes a checkpoint after every N steps and after the last one; it replaces the one before when it is whole",
       number(s.every, 1, INT64_MAX)},
      {"checkpoint", "FILE.safetensors",
       "where checkpoints go; NAME.ckpt.safetensors beside --out NAME.safetensors if not given", text(s.checkpoint)},
      {"continue", "",
       "goes on from --checkpoint if it is there, else begins: a command that may be started again at any time",
       flag(s.goOn)},
      {"resume", "FILE.safetensors",
       "goes on from a checkpoint. --data, --eval and --log must be those that it was made with, --epochs may be more",
       text(s.resume)},
      {"drop-last", "", "leaves out the last batch of an epoch where it has fewer rows than the others",
       flag(s.dropLast)},
      {"find-nan", "",
       "looks at every value that --taps kept in train_step and at every state, and names the first that is no number",
       flag(s.findNaN)},
  };
  for (Option &o : deviceOptions(s.where)) p.options.push_back(std::move(o));
  p.options.push_back(engineOption(s.engine));
  p.options.push_back({"quiet", "", "shows no progress on a terminal, and no line for an epoch", flag(s.quiet)});
  p.operands = {".astra"};
  p.examples =
      "  astra-compile digits.onnx -o digits.astra --dim batch=1..64 --train --predict=linear --loss=cross_entropy\n"
      "  astra-train digits.astra --data image=x.npy,target=y.npy --epochs 20 --batch 32 --seed 1 --out "
      "weights.safetensors \\\n"
      "      --eval image=test_x.npy,target=test_y.npy --log run.csv --checkpoint-every 100\n"
      "  astra-train digits.astra --data image=x.npy,target=y.npy --epochs 20 --out weights.safetensors \\\n"
      "      --eval image=test_x.npy,target=test_y.npy --log run.csv --resume weights.ckpt.safetensors\n"
      "  astra-compile digits.onnx -o trained.astra --dim batch=1..64 --weights weights.safetensors\n";
  return p;
}

/// An output that would replace what the run reads: a sentence, or "". Weights may be trained in their place, and a
/// checkpoint follows the one that a run goes on from.
static std::string clash(const TrainSettings &s) {
  Place out{"--out", s.out}, log{"--log", s.log}, checkpoint{"--checkpoint", s.every ? checkpointPath(s) : ""};
  std::vector<Place> inputs{{"the bundle", s.bundle}};
  for (auto [option, places] : {std::pair("--data", &s.data), std::pair("--eval", &s.eval)})
    for (const std::string &place : *places) {
      size_t eq = place.find('=');
      inputs.push_back({option, fileOf(eq == place.npos ? place : place.substr(eq + 1))});
    }
  std::string wrong = overwritten(inputs, {out, log, checkpoint});
  if (wrong.empty()) wrong = overwritten({{"--weights", s.weights}}, {log, checkpoint});
  if (wrong.empty()) wrong = overwritten({{"--resume", s.resume}}, {out, log});
  return wrong;
}

int main(int argc, char **argv) {
  // A file that grows beyond a limit is then a write that fails, with a sentence.
  std::signal(SIGXFSZ, SIG_IGN);
  TrainSettings s;
  Program program = describe(s);
  std::vector<std::string> files;
  if (int code = parse(program, argc, argv, files); code >= 0) return code;
  std::string wrong;
  if (files.size() != 1)
    wrong = "give one bundle";
  else if (s.data.empty())
    wrong = "no data: give --data INPUT=FILE,...";
  else if (!s.epochs)
    wrong = "how often? give --epochs N";
  else if (s.out.empty())
    wrong = "where do the weights go? give --out FILE.safetensors";
  else if (!s.resume.empty() && !s.weights.empty())
    wrong = "--resume and --weights both say what to begin with";
  else if (!s.checkpoint.empty() && !s.every)
    wrong = "--checkpoint says where, not how often: give --checkpoint-every N";
  else if (s.goOn && !s.every)
    wrong = "--continue goes on from checkpoints, of which there are none: give --checkpoint-every N";
  else if (s.goOn && !s.resume.empty())
    wrong = "--continue and --resume both say what to go on from";
  else if (s.init && !(s.resume.empty() && s.weights.empty()))
    wrong = "--init and " + std::string(s.resume.empty() ? "--weights" : "--resume") + " both say what to begin with";
  else
    wrong = complaint(s.where);
  if (!wrong.empty()) return complain(program, Usage, wrong + " (see astra-train --help)");
  s.bundle = files[0];
  if (s.goOn && std::filesystem::exists(checkpointPath(s)))
    s.resume = checkpointPath(s), s.weights.clear(), s.init = false;
  if (wrong = clash(s); !wrong.empty()) return complain(program, Usage, wrong);
  try {
    Trainer(s).run();
    return Ok;
  } catch (const Refusal &r) {
    return complain(program, r.code, r.text);
  }
}
